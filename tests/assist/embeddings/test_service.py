"""The embedding models of a manifest: loaded, found by name, called, replaced and closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from caraway_assist.embeddings.service import Embeddings
from caraway_core import manifest as manifests
from caraway_core.errors import ModelAwayError, ModelError, NotFoundError, OverloadedError
from caraway_core.ids import NodeId
from caraway_core.loading import registry
from caraway_core.manifest.values.caching import EmbeddingsCacheSettings
from caraway_core.protocols.embedding import EmbedderSpec
from caraway_scheduler.history.tasks import HistorySettings, TaskHistory
from caraway_serving import spans
from tests.kit.embedders import FakeEmbedder

ONE = "  - {from: 'openai:small', name: one, params: {openai_api_key: k}}\n"
TWO = "  - {from: 'openai:large', name: two, params: {openai_api_key: k}}\n"
AWAY = ModelError("the provider is away", "unavailable")


class Builds:
    """Builds a fake model for each spec, unless it has an error."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.specs: list[EmbedderSpec] = []
        self.models: list[FakeEmbedder] = []

    def __call__(self, _provider: str, spec: EmbedderSpec) -> FakeEmbedder:
        self.specs.append(spec)
        if self.error is not None:
            raise self.error
        self.models.append(FakeEmbedder())
        return self.models[-1]

    def built(self, name: str) -> FakeEmbedder:
        """Return the last model that was built for a name."""
        named = zip(self.specs, self.models, strict=True)
        return [model for spec, model in named if spec.name == name][-1]


class Service:
    """The embedding models under test."""

    def __init__(self, folder: Path, caching: EmbeddingsCacheSettings | None) -> None:
        self._folder = folder
        settings = HistorySettings(captures_output=True)
        self.history = TaskHistory(settings, NodeId("n"), lambda: 0)
        self.embeddings = Embeddings(self.history, 4, caching=caching)

    def begin(self, *models: str) -> bool:
        """Take the models of a manifest; return whether they are others."""
        path = self._folder / "caraway.yaml"
        listed = "embeddings:\n" + "".join(models) if models else ""
        path.write_text(f"version: v1\nname: test\n{listed}")
        manifest = manifests.load(path)
        return self.embeddings.apply(manifest, manifests.build_resolver(manifest, {}))

    async def apply(self, *models: str) -> bool:
        """Take the models of a manifest, and wait until each was tried once."""
        has_changed = self.begin(*models)
        async with asyncio.timeout(60):
            await self.embeddings.wait_settled()
        return has_changed


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Builds:
    made = Builds()
    monkeypatch.setattr(registry.EMBEDDERS, "build", made)
    return made


@asynccontextmanager
async def serving(
    folder: Path, caching: EmbeddingsCacheSettings | None = None
) -> AsyncIterator[Service]:
    service = Service(folder, caching)
    try:
        yield service
    finally:
        await service.embeddings.aclose()


async def closed(model: FakeEmbedder) -> None:
    async with asyncio.timeout(60):
        while not model.is_closed:
            await asyncio.sleep(0)


async def test_models_are_found_by_name_and_reported_when_they_are_ready(
    tmp_path: Path, builds: Builds
) -> None:
    async with serving(tmp_path) as service:
        ready: list[tuple[str, str]] = []
        service.embeddings.on_ready = lambda name, identity: ready.append((name, identity))
        assert await service.apply(ONE, TWO)
        assert [each.name for each in service.embeddings.catalog.specs][:2] == ["one", "two"]
        assert await service.embeddings.embedder("one") is builds.built("one")
        assert sorted(ready) == [("one", "fake"), ("two", "fake")]
        with pytest.raises(NotFoundError, match=r"'ones'.*'one'"):
            await service.embeddings.embedder("ones")


async def test_models_that_did_not_change_are_kept_and_others_are_closed(
    tmp_path: Path, builds: Builds
) -> None:
    async with serving(tmp_path) as service:
        await service.apply(ONE, TWO)
        one, two = builds.built("one"), builds.built("two")
        assert not await service.apply(ONE, TWO)
        assert await service.apply(ONE, TWO.replace("large", "larger"))
        assert len(builds.models) == 3
        await closed(two)
        assert await service.embeddings.embedder("one") is one and not one.is_closed
        await service.apply(ONE)
        await closed(builds.built("two"))
        with pytest.raises(NotFoundError):
            service.embeddings.find("two")


async def test_a_model_that_cannot_be_loaded_says_why(tmp_path: Path, builds: Builds) -> None:
    builds.error = AWAY
    async with serving(tmp_path) as service:
        await service.apply(ONE)
        with pytest.raises(ModelError, match="the provider is away"):
            await service.embeddings.settled_embedder("one")
        with pytest.raises(ModelError, match="the provider is away"):
            await service.embeddings.embed("one", ["a"], spans.start(None))
        assert service.embeddings.tallies.failures == {("one", "model.unavailable"): 1}


async def test_a_model_without_its_secret_is_in_error_and_never_built(
    tmp_path: Path, builds: Builds
) -> None:
    async with serving(tmp_path) as service:
        await service.apply(ONE.replace("api_key: k", "api_key: '${ env:NO_SUCH_KEY }'"))
        with pytest.raises(ModelError, match=r"'one'.*NO_SUCH_KEY") as caught:
            await service.embeddings.embedder("one")
        assert caught.value.code == "model.auth" and builds.specs == []


async def test_a_call_before_the_first_load_is_told_to_try_again(
    tmp_path: Path, builds: Builds
) -> None:
    async with serving(tmp_path) as service:
        service.begin(ONE)
        with pytest.raises(ModelAwayError, match="still loading"):
            await service.embeddings.embedder("one")
        assert await service.embeddings.settled_embedder("one") is builds.built("one")


async def test_calls_are_counted_and_recorded(tmp_path: Path, builds: Builds) -> None:
    async with serving(tmp_path) as service:
        await service.apply(ONE)
        answer = await service.embeddings.embed("one", ["a", "bbb"], spans.start(None))
        assert answer.vectors.to_pylist() == [[1.0, 1.0], [3.0, 1.0]]
        builds.built("one").fails = AWAY
        with pytest.raises(ModelError):
            await service.embeddings.embed("one", ["c"], spans.start(None))
        tallies = service.embeddings.tallies
        assert (tallies.requests, tallies.texts, tallies.tokens) == (
            {("one",): 2}, {("one",): 2}, {("one",): 4},
        )  # fmt: skip
        first, second = service.history.table(None).to_pylist()
        assert (first["task"], first["input"]) == ("text_embed", "a\nbbb")
        assert dict(first["labels"])["prompt_tokens"] == "4" and first["error_message"] is None
        assert second["error_message"] == "the provider is away"


async def test_answers_are_kept_only_where_the_manifest_says_so(
    tmp_path: Path, builds: Builds
) -> None:
    for caching, calls in ((EmbeddingsCacheSettings(), 1), (None, 2)):
        async with serving(tmp_path, caching) as service:
            await service.apply(ONE)
            for _ in range(2):
                await service.embeddings.embed("one", ["a"], spans.start(None))
            assert len(builds.built("one").calls) == calls


async def test_too_many_waiting_texts_are_refused(tmp_path: Path, builds: Builds) -> None:
    async with serving(tmp_path) as service:
        await service.apply(ONE)
        model = builds.built("one")
        model.gate.clear()
        call = asyncio.create_task(
            service.embeddings.embed("one", ["a", "b", "c"], spans.start(None))
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert service.embeddings.waiting == {"one": 3}
        with pytest.raises(OverloadedError, match="3 texts wait"):
            await service.embeddings.embed("one", ["d", "e"], spans.start(None))
        model.gate.set()
        assert len((await call).vectors) == 3


async def test_vectors_of_datasets_are_made_once(tmp_path: Path, builds: Builds) -> None:
    async with serving(tmp_path, EmbeddingsCacheSettings()) as service:
        await service.apply(ONE)
        for _ in range(2):
            vectors = await service.embeddings.vectors("one", ["a", "bbb"])
            assert vectors.to_pylist() == [[1.0, 1.0], [3.0, 1.0]]
        assert builds.built("one").calls == [["a", "bbb"]]
        assert service.embeddings.statement_texts == {"one": 4}


async def test_closing_closes_every_model(tmp_path: Path, builds: Builds) -> None:
    async with serving(tmp_path) as service:
        await service.apply(ONE, TWO)
    assert all(model.is_closed for model in builds.models)
