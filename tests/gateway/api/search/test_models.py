"""Searches whose embedding model is loading, down, or replaced by one with longer vectors."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from caraway_core import manifest as manifests
from caraway_core.concurrency.backoff import Delays
from caraway_plugins.embeddings import remote
from tests.kit.deadlines import eventually
from tests.kit.documents import found
from tests.kit.json_provider import (
    JsonProvider,
    ProviderAnswer,
    ProviderRequest,
    json_provider,
    openai_embeddings,
)
from tests.kit.runtime import Running, running

ASKED = {"text": "bbb", "datasets": ["t"]}
FAILED = "embedding model 'm': the provider failed (502)"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[JsonProvider]:
    monkeypatch.setattr(remote.RemoteEmbedder.__init__, "__defaults__", (Delays(0.0, 0.0),))
    with json_provider(openai_embeddings) as provider:
        yield provider


def manifest(provider: JsonProvider, model: str = "x") -> str:
    return f"""
    runtime: {{caching: {{search_results: {{enabled: false}}}}}}
    embeddings: [{{from: 'openai:{model}', name: m, params: {{endpoint: '{provider.url}'}}}}]
    datasets:
      - from: file:a.csv
        name: t
        acceleration: {{primary_key: id}}
        columns: [{{name: body, embeddings: [{{from: m}}], full_text_search: {{enabled: true}}}}]
    """


async def _loaded(runtime: Running) -> None:
    async def look() -> bool:
        answer = await runtime.sql("SELECT count(*) FROM t")
        return bool(answer.status_code == 200)

    await eventually(look, "the dataset is loaded")


async def _searched(runtime: Running, **more: Any) -> Any:
    return await runtime.api.post("/v1/search", json={**ASKED, **more})


async def test_a_model_that_is_loading_and_a_provider_that_is_down(
    tmp_path: Path, provider: JsonProvider
) -> None:
    (tmp_path / "a.csv").write_text("id,body\n1,a\n2,bbb\n")
    async with running(tmp_path, manifest(provider)) as runtime:
        await _loaded(runtime)
        state = runtime.services.embeddings.states["m"]
        state.loaded, embedder = None, state.loaded
        answer = await _searched(runtime)
        assert answer.status_code == 503 and int(answer.headers["retry-after"]) > 0
        assert answer.json() == {"error": "embedding model 'm' is still loading; try again"}
        by_words = await runtime.sql("SELECT id FROM text_search(t, 'bbb')")
        assert by_words.json() == [{"id": 2}]
        state.loaded = embedder

        def fail(request: ProviderRequest) -> ProviderAnswer:
            return ProviderAnswer({"error": "gone"}, 502)

        provider.answer = fail
        down = await _searched(runtime)
        assert (down.status_code, down.json()) == (503, {"error": FAILED})
        in_sql = await runtime.sql("SELECT id FROM vector_search(t, 'bbb')")
        assert (in_sql.status_code, in_sql.text) == (503, FAILED)
        provider.answer = openai_embeddings
        assert len(await found(runtime, "bbb", "t")) == 2


async def test_a_model_of_longer_vectors(tmp_path: Path, provider: JsonProvider) -> None:
    (tmp_path / "a.csv").write_text("id,body\n1,a\n2,bbb\n")
    async with running(tmp_path, manifest(provider)) as runtime:
        await _loaded(runtime)
        assert (await found(runtime, "bbb", "t"))[0]["primary_key"] == {"id": 2}
        may_answer = threading.Event()

        def longer(request: ProviderRequest) -> ProviderAnswer:
            if len(request.body["input"]) > 1:
                assert may_answer.wait(60)
            request.body["dimensions"] = 6
            return openai_embeddings(request)

        provider.answer = longer
        path = tmp_path / "caraway.yaml"
        path.write_text(path.read_text().replace("openai:x", "openai:y"))
        loaded = manifests.load(path)
        await runtime.services.catalog.apply(loaded, manifests.build_resolver(loaded, {}))
        await runtime.services.embeddings.wait_settled()
        # The vectors of the old model cannot be compared, but words are still found.
        (by_words,) = await found(runtime, "bbb", "t")
        assert by_words["primary_key"] == {"id": 2} and by_words["_score"] == 1 / 61
        may_answer.set()

        async def is_made() -> bool:
            answer = await runtime.sql("SELECT id FROM vector_search(t, 'bbb')")
            return answer.status_code == 200 and len(answer.json()) == 2

        await eventually(is_made, "the vectors of the new model")
        assert (await found(runtime, "bbb", "t"))[0]["primary_key"] == {"id": 2}
