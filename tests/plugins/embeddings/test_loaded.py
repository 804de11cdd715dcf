"""The models of one process."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from caraway_core.errors import ModelAwayError, ModelError, NotFoundError, NotInstalledError
from caraway_core.loading import registry
from caraway_core.protocols.embedding import EmbedderSpec
from caraway_plugins.embeddings.loaded import LoadedEmbedders
from tests.kit.embedders import FakeEmbedder


class Providers:
    """Stands in for the registry: builds fake models, or fails."""

    def __init__(self) -> None:
        self.built: list[FakeEmbedder] = []
        self.error: Exception | None = None

    def build(self, name: str, spec: EmbedderSpec) -> FakeEmbedder:
        if self.error is not None:
            raise self.error
        self.built.append(FakeEmbedder())
        return self.built[-1]


@pytest.fixture
def providers(monkeypatch: pytest.MonkeyPatch) -> Providers:
    providers = Providers()
    monkeypatch.setattr(registry, "EMBEDDERS", providers)
    return providers


def spec(name: str = "m", **params: str) -> EmbedderSpec:
    return EmbedderSpec(name, "fake", "x", params)


def test_a_model_is_loaded_once_for_all_threads_and_catalogs(providers: Providers) -> None:
    loaded = LoadedEmbedders()
    catalogs = [loaded.embedders_of([spec(key="a"), spec("other")]) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda models: models.vectors("m", ["a"]), catalogs))
    assert len(providers.built) == 1
    assert loaded.embedders_of([spec(key="b")]).find("m") is not catalogs[0].find("m")
    loaded.forget([spec(key="a")])
    assert providers.built[0].is_closed and not providers.built[1].is_closed
    loaded.close()
    assert providers.built[1].is_closed
    with pytest.raises(ModelAwayError, match="'m': the process is ending"):
        loaded.load(spec())
    loaded.close()


def test_unknown_models_are_named(providers: Providers) -> None:
    with pytest.raises(NotFoundError, match="no embedding model 'n'; known: m"):
        LoadedEmbedders().embedders_of([spec()]).find("n")


def test_a_failure_is_kept_for_a_while(providers: Providers) -> None:
    loaded = LoadedEmbedders()
    providers.error = ModelError("broken", "auth")
    for _ in range(2):  # The first retry is immediate.
        with pytest.raises(ModelError, match="broken"):
            loaded.load(spec())
    providers.error = ModelError("other")
    with pytest.raises(ModelError, match="broken"):
        loaded.load(spec())


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (NotInstalledError("needs the package 'x'"), "^embedding model 'm': needs the package 'x'"),
        (RuntimeError("secret"), "^embedding model 'm' cannot be loaded; the log has the cause$"),
    ],
)
def test_other_failures_become_those_of_the_model(
    providers: Providers, error: Exception, said: str
) -> None:
    providers.error = error
    with pytest.raises(ModelError, match=said):
        LoadedEmbedders().load(spec())
