"""`POST /v1/embeddings`, and the states of embedding models."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest

from caraway_core import manifest as manifests
from caraway_core.concurrency.backoff import Delays
from caraway_plugins.embeddings import remote
from tests.kit.deadlines import eventually
from tests.kit.embedders import FakeEmbedder
from tests.kit.json_provider import (
    JsonProvider,
    ProviderAnswer,
    json_provider,
    openai_embeddings,
)
from tests.kit.listening import listening
from tests.kit.runtime import Running, running

MINI = "builtin:minilm"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[JsonProvider]:
    monkeypatch.setattr(remote.RemoteEmbedder.__init__, "__defaults__", (Delays(0.0, 0.0),))
    with json_provider(openai_embeddings) as provider:
        yield provider


def listed(provider: JsonProvider, *more: str) -> str:
    params = f"params: {{endpoint: '{provider.url}', openai_api_key: k}}"
    return "\n".join(("embeddings:", f"  - {{from: 'openai:x', name: mine, {params}}}", *more))


async def posted(runtime: Running, **body: Any) -> Any:
    return await runtime.api.post("/v1/embeddings", json=body)


async def test_the_wire_is_that_of_openai(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        answer = await posted(runtime, model=MINI, input="a small cat")
        content = answer.json()
        assert answer.status_code == 200
        assert list(content) == ["object", "data", "model", "usage"]
        assert (content["object"], content["model"]) == ("list", MINI)
        assert content["usage"] == {"prompt_tokens": 5, "total_tokens": 5}
        (item,) = content["data"]
        assert (item["object"], item["index"], len(item["embedding"])) == ("embedding", 0, 384)
        packed = await posted(
            runtime, model=MINI, input=["other", "a small cat"], encoding_format="base64"
        )
        items = packed.json()["data"]
        assert [each["index"] for each in items] == [0, 1]
        vector = np.frombuffer(base64.b64decode(items[1]["embedding"]), "<f4")
        assert vector.tolist() == np.array(item["embedding"], np.float32).tolist()
        tokens = await posted(runtime, model=MINI, input=[[1037, 2235, 4937]])
        assert tokens.json()["data"][0]["embedding"] == item["embedding"]
        one = await posted(runtime, model=MINI, input=[1037, 2235, 4937])
        assert one.json() == tokens.json()
        short = await posted(runtime, model="builtin:wordllama", input="a", dimensions=64)
        assert len(short.json()["data"][0]["embedding"]) == 64


async def test_the_client_of_openai_understands_it(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        transport: Any = runtime.api._transport
        async with listening(transport.app) as url:
            client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
            async with client:
                found = await client.embeddings.create(model=MINI, input=["a", "b"])
                plain = await client.embeddings.create(
                    model=MINI, input=["a", "b"], encoding_format="float"
                )
                for packed, written in zip(found.data, plain.data, strict=True):
                    assert np.allclose(packed.embedding, written.embedding)
                assert found.usage.total_tokens == 6
                with pytest.raises(openai.NotFoundError):
                    await client.embeddings.create(model="gpt", input="a")
                with pytest.raises(openai.BadRequestError):
                    await client.embeddings.create(model=MINI, input="")


WRONG: list[tuple[Any, str]] = [
    ({}, "'model': field required"),
    ({"model": MINI}, "'input' is missing; send"),
    ({"model": 3, "input": "a"}, "'model': input should be a valid string"),
    ({"model": MINI, "input": ""}, "'input' must be a text or a list of texts"),
    ({"model": MINI, "input": []}, "'input' must be a text or a list of texts"),
    ({"model": MINI, "input": ["a", ""]}, "'input' must be a text or a list of texts"),
    ({"model": MINI, "input": ["a", 3]}, "'input' must be a text or a list of texts"),
    ({"model": MINI, "input": {"a": 1}}, "'input' must be a text or a list of texts"),
    ({"model": MINI, "input": [[]]}, "'input' must be a text or a list of texts"),
    ({"model": MINI, "input": [[-1]]}, "'input' must be a text or a list of texts"),
    ({"model": MINI, "input": [[99999999]]}, "has no token 99999999"),
    ({"model": MINI, "input": ["a"] * 2049}, "'input' has 2049 texts; send at most 2048"),
    ({"model": MINI, "input": "a" * 1_048_577}, "has more than 1048576 characters; cut it"),
    ({"model": MINI, "input": ["a" * 50_000] * 2048}, "have 102400000 characters; send at most"),
    ({"model": MINI, "input": ["a" * 600_000] * 2}, "have 1200000 characters; send at most"),
    ({"model": MINI, "input": [[1] * 1000] * 301}, "'input' has 301000 tokens; send at most"),
    ({"model": MINI, "input": [1] * 300_001}, "'input' has 300001 tokens; send at most"),
    ({"model": MINI, "input": [[]] * 2049}, "'input' has 2049 texts; send at most 2048"),
    ({"model": MINI, "input": "a", "encoding_format": "hex"}, "'encoding_format': input shou"),
    ({"model": MINI, "input": "a", "dimensions": 0}, "'dimensions': input should be greater"),
    ({"model": MINI, "input": "a", "dimensions": 128}, "has no vectors of 128 dimensions"),
]


async def test_wrong_requests_are_refused(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        for body, said in WRONG:
            answer = await posted(runtime, **body)
            assert answer.status_code == 400, body
            assert said in answer.json()["error"]
        for content, status, said in (
            (b"", 400, "not JSON"),
            (b"[1]", 400, "the body is no object"),
            (b'{"model": "a", "model": "b"}', 400, "not JSON"),
            (b"\xff", 400, "not JSON"),
        ):
            answer = await runtime.api.post("/v1/embeddings", content=content)
            assert (answer.status_code, said in answer.json()["error"]) == (status, True)
        unknown = await posted(runtime, model="minilm", input="a")
        assert unknown.status_code == 404
        assert "? Known: builtin:minilm, builtin:wordllama" in unknown.json()["error"]


async def test_keys_metrics_and_history(tmp_path: Path) -> None:
    auth = "runtime: {auth: {api-key: {keys: [reader, 'writer:rw']}}}"
    async with running(tmp_path, auth) as runtime:
        body = {"model": MINI, "input": ["a", "b"]}
        assert (await runtime.api.post("/v1/embeddings", json=body)).status_code == 401
        key = {"x-api-key": "reader"}
        assert (await runtime.api.post("/v1/embeddings", json=body, headers=key)).status_code == 200
        wrong = {**body, "dimensions": 5}
        refused = await runtime.api.post("/v1/embeddings", json=wrong, headers=key)
        assert refused.status_code == 400
        sql = (
            "SELECT input, error_message IS NULL AS is_fine, labels['model'] AS model, "
            "labels['prompt_tokens'] AS tokens, parent_span_id IS NULL AS is_root "
            "FROM runtime.task_history WHERE task = 'text_embed' ORDER BY start_time"
        )
        rows = (await runtime.sql(sql, **key)).json()
        assert rows == [
            {"input": "", "is_fine": True, "model": MINI, "tokens": "6", "is_root": False},
            {"input": "", "is_fine": False, "model": MINI, "tokens": None, "is_root": False},
        ]
        other = await runtime.sql(sql, **{"x-api-key": "writer"})
        assert other.json() == []
        page = (await runtime.metrics.get("/metrics")).text
        for line in (
            f'embeddings_requests_total{{model="{MINI}"}} 2.0',
            f'embeddings_texts_total{{model="{MINI}"}} 2.0',
            f'embeddings_tokens_total{{model="{MINI}"}} 6.0',
            f'embeddings_failures_total{{error="model.invalid",model="{MINI}"}} 1.0',
            f'embeddings_duration_ms_count{{model="{MINI}"}} 2.0',
            f'embeddings_waiting_texts{{model="{MINI}"}} 0.0',
        ):
            assert line in page


async def test_a_model_of_a_provider(tmp_path: Path, provider: JsonProvider) -> None:
    async with running(tmp_path, listed(provider)) as runtime:
        assert (await runtime.api.get("/v1/ready")).status_code == 200
        answer = await posted(runtime, model="mine", input="abc", dimensions=6)
        assert answer.json()["data"][0]["embedding"] == [3.0, 1.0, 0.0, 0.0, 0.0, 0.0]
        provider.first = [ProviderAnswer({}, 429, {"retry-after": "60"})]
        limited = await posted(runtime, model="mine", input="abc")
        assert (limited.status_code, limited.headers["retry-after"]) == (503, "60")
        assert limited.json() == {"error": "embedding model 'mine': the provider limits the rate"}
        provider.first = [ProviderAnswer({"message": "k"}, 401)]
        denied = await posted(runtime, model="mine", input="abc")
        assert denied.status_code == 500
        assert "denied access (401)" in denied.json()["error"]
        page = (await runtime.metrics.get("/metrics")).text
        assert 'embeddings_load_state{model="mine"} 1.0' in page


async def test_a_model_that_does_not_load_is_tried_again(
    tmp_path: Path, provider: JsonProvider
) -> None:
    provider.first = [ProviderAnswer({}, 401)]
    async with running(tmp_path, listed(provider)) as runtime:
        state = runtime.services.embeddings.find("mine")
        assert (state.status, state.error and state.error.code) == ("error", "model.auth")
        not_ready = await runtime.api.get("/v1/ready?verbose=true")
        assert (not_ready.status_code, "embedding model mine (error)" in not_ready.text) == (
            503,
            True,
        )
        failed = await posted(runtime, model="mine", input="a")
        assert (failed.status_code, "denied access" in failed.json()["error"]) == (500, True)

        async def is_ready() -> bool:
            return state.status == "ready"

        await eventually(is_ready, "the model is loaded")
        assert (await posted(runtime, model="mine", input="a")).status_code == 200


async def test_a_missing_secret_is_told(tmp_path: Path) -> None:
    text = "embeddings: [{from: openai, name: m, params: {openai_api_key: '${env:NO_KEY}'}}]"
    async with running(tmp_path, text) as runtime:
        failed = await posted(runtime, model="m", input="a")
        assert failed.status_code == 500
        assert "'openai_api_key': secret 'NO_KEY' was not found" in failed.json()["error"]


async def test_a_loading_model_and_a_full_queue(tmp_path: Path) -> None:
    async with running(tmp_path, "embeddings: [{from: 'builtin:wordllama', name: m}]") as runtime:
        embeddings = runtime.services.embeddings
        state = embeddings.find("m")
        fake = FakeEmbedder()
        state.loaded, embedder = None, state.loaded
        loading = await posted(runtime, model="m", input="a")
        assert (loading.status_code, loading.headers["retry-after"]) == (503, "2")
        assert "is still loading" in loading.json()["error"]
        state.loaded = embedder
        embeddings._batches("m", fake).waiting_texts = 20_000
        full = await posted(runtime, model="m", input="a")
        assert (full.status_code, full.headers["retry-after"]) == (429, "1")


async def test_a_reload_replaces_only_what_changed(tmp_path: Path, provider: JsonProvider) -> None:
    text = listed(provider, "  - {from: 'builtin:wordllama', name: words}")
    async with running(tmp_path, text) as runtime:
        embeddings = runtime.services.embeddings
        before = dict(embeddings.states)
        version = runtime.services.catalog.version
        path = tmp_path / "caraway.yaml"
        path.write_text(path.read_text().replace("'openai:x'", "'openai:y'"))
        loaded = manifests.load(path)
        secrets = manifests.build_resolver(loaded, {})
        await runtime.services.catalog.apply(loaded, secrets)
        assert embeddings.states["words"] is before["words"]
        assert embeddings.states["mine"] is not before["mine"]
        await embeddings.wait_settled()
        assert (await posted(runtime, model="mine", input="abc")).status_code == 200
        assert provider.requests[-1].body["model"] == "y"
        assert runtime.services.catalog.version == version + 1
        await runtime.services.catalog.apply(loaded, secrets)
        assert runtime.services.catalog.version == version + 1


async def test_statements_use_the_models(tmp_path: Path, provider: JsonProvider) -> None:
    (tmp_path / "a.csv").write_text("id,body\n1,abc\n2,abcde\n3,\n4,abc\n")
    text = listed(provider) + "\ndatasets: [{from: 'file:a.csv', name: a}]"
    async with running(tmp_path, text) as runtime:
        provider.requests.clear()
        rows = (await runtime.sql("SELECT id, embed(body, 'mine') AS v FROM a ORDER BY id")).json()
        assert [row["v"] and row["v"][0] for row in rows] == [3.0, 5.0, None, 3.0]
        assert [sorted(each.body["input"]) for each in provider.requests] == [["abc", "abcde"]]
        values = "(SELECT array_agg(x ORDER BY x) FROM (VALUES ('a'), ('bbb')) AS u(x))"
        for texts in ("['a', 'bbb']", "make_array('a', 'bbb')", values):
            found = await runtime.sql(f"SELECT embed({texts}, 'mine') AS v")
            assert [vector[0] for vector in found.json()[0]["v"]] == [1.0, 3.0]
        provider.requests.clear()
        plan = await runtime.sql("EXPLAIN SELECT embed('abc', 'mine') FROM a")
        assert (plan.status_code, len(provider.requests)) == (200, 0)
        unknown = await runtime.sql("SELECT embed(body, 'other') FROM a")
        assert unknown.status_code == 400
        assert "no embedding model 'other'" in unknown.text
        provider.first = [ProviderAnswer({}, 429, {"retry-after": "60"})]
        limited = await runtime.sql("SELECT embed(body || '?', 'mine') FROM a")
        assert (limited.status_code, limited.headers["retry-after"]) == (503, "60")
        provider.first = [ProviderAnswer({}, 401)]
        denied = await runtime.sql("SELECT embed(body || '!', 'mine') FROM a")
        assert (denied.status_code, "denied access (401)" in denied.text) == (500, True)
