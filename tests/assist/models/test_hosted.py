"""Chat models on the executors of a cluster in this process, over HTTP."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from caraway_ai.local.sent_files import FileSender, SentFile
from caraway_ai.protocols import ChatChunk, ChatCompletion, ChatRequest
from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelError
from caraway_core.ids import ExecutorId
from caraway_core.loading import registry
from tests.kit.cluster_runtime import Clustered, clustered
from tests.kit.deadlines import eventually
from tests.kit.scripted_chat import ScriptedChat
from tests.kit.scripted_provider import completion

PROMPT, ANSWER, KEY = "a private prompt", "a private answer", "hf_a_secret_token"
BODY = {"model": "local", "messages": [{"role": "user", "content": PROMPT}]}
MANIFEST = f"""
models:
  - from: huggingface:huggingface.co/o/m
    name: local
    params: {{hf_token: {KEY}}}
    resources: {{cpu: 1, memory: 1MiB, copies: %d}}
"""


@dataclass(slots=True)
class Gated(ScriptedChat):
    """Waits before an answer, and after the first pieces of a stream."""

    built: list[ModelSpec] = field(default_factory=list)
    may_begin: asyncio.Event = field(default_factory=asyncio.Event)
    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)
    error: ModelError | None = None
    progress: str = ""

    async def check(self) -> None:
        if self.error is not None:
            raise self.error

    async def chat(self, request: ChatRequest) -> ChatCompletion:
        self.requests.append(request)
        await self.may_begin.wait()
        return self.answers[0]

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        # By name: slots leave `super()` without its class.
        index = 0
        async for each in ScriptedChat.stream(self, request):
            yield each
            index += 1
            if index == 3:
                await self.may_go_on.wait()


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Gated:
    """The model that all executors build."""
    gated = Gated([completion(ANSWER)])
    gated.may_begin.set()
    gated.may_go_on.set()
    load = registry.MODEL_PROVIDERS.load

    def built(spec: ModelSpec) -> Gated:
        gated.built.append(spec)
        return gated

    monkeypatch.setattr(
        registry.MODEL_PROVIDERS,
        "load",
        lambda name: built if name == "huggingface" else load(name),
    )
    return gated


@asynccontextmanager
async def served(folder: Path, copies: int = 2) -> AsyncIterator[Clustered]:
    async with clustered(folder, MANIFEST % copies) as cluster:
        await status(cluster, "ready", copies)
        yield cluster


async def status(cluster: Clustered, wanted: str, copies: int) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        listing = await cluster.runtime.api.get("/v1/models?status=true")
        (entry,) = listing.json()["data"]
        ready = [each for each in entry["copies"] or () if each["status"] == "ready"]
        return entry if (entry["status"], len(ready)) == (wanted, copies) else None

    found = await eventually(look, f"the model is {wanted} with {copies} copies")
    assert found is not None
    return found


async def test_copies_answer_and_are_listed_and_counted(tmp_path: Path, model: Gated) -> None:
    async with served(tmp_path) as cluster:
        api = cluster.runtime.api
        for _ in range(2):
            answer = await api.post("/v1/chat/completions", json=BODY)
            assert answer.json()["choices"][0]["message"]["content"] == ANSWER
        stream = await api.post("/v1/chat/completions", json={**BODY, "stream": True})
        assert stream.text.rstrip().endswith("[DONE]")
        entry = await status(cluster, "ready", 2)
        assert [each["executor"] for each in entry["copies"]] == ["e1", "e2"]
        page = (await cluster.runtime.metrics.get("/metrics")).text
    assert 'model_copies{model="local",state="ready"} 2.0' in page
    assert 'llm_completion_tokens_total{model="local"} 12.0' in page
    assert 'llm_active_requests{model="local"} 0.0' in page
    assert len(model.built) == 2
    assert {spec.cache_dir.name for spec in model.built} == {"caraway-models"}


async def test_requests_of_a_lost_executor_are_answered_by_another(
    tmp_path: Path, model: Gated
) -> None:
    async with served(tmp_path) as cluster:
        model.may_begin.clear()
        calls = [cluster.runtime.api.post("/v1/chat/completions", json=BODY) for _ in range(4)]
        answers = asyncio.gather(*calls)

        async def begun() -> bool:
            return len(model.requests) == 4

        await eventually(begun, "all calls have begun")
        await cluster.fleet.lose(ExecutorId("e1"))
        model.may_begin.set()
        for answer in await answers:
            assert answer.json()["choices"][0]["message"]["content"] == ANSWER
        page = (await cluster.runtime.metrics.get("/metrics")).text
        assert 'model_moves_total{model="local"} 2.0' in page


async def test_a_stream_that_has_begun_ends_with_an_error_and_the_copy_moves(
    tmp_path: Path, model: Gated
) -> None:
    async with served(tmp_path, copies=1) as cluster:
        entry = await status(cluster, "ready", 1)
        place = entry["copies"][0]["executor"]
        model.may_go_on.clear()
        body = {**BODY, "stream": True}
        asked = asyncio.gather(cluster.runtime.api.post("/v1/chat/completions", json=body))

        async def begun() -> bool:
            page = (await cluster.runtime.metrics.get("/metrics")).text
            return 'llm_active_requests{model="local"} 1.0' in page and bool(model.requests)

        await eventually(begun, "the stream has begun")
        await cluster.fleet.lose(ExecutorId(place))
        (stream,) = await asked
        assert "model.unavailable" in stream.text
        assert "[DONE]" not in stream.text
        entry = await status(cluster, "ready", 1)
        assert entry["copies"][0]["executor"] != place


async def test_nothing_private_is_logged(
    tmp_path: Path, model: Gated, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    async with served(tmp_path) as cluster:
        api = cluster.runtime.api
        await api.post("/v1/chat/completions", json=BODY)
        await api.post("/v1/chat/completions", json={**BODY, "stream": True})
        model.error = ModelError("model 'local': the hub denies access", "auth")
        await cluster.fleet.lose(ExecutorId("e1"))
        await api.post("/v1/chat/completions", json=BODY)
        history = await cluster.runtime.sql("SELECT * FROM runtime.task_history")
        listing = await api.get("/v1/models?status=true")
    logged = "\n".join(f"{each.getMessage()} {vars(each)}" for each in caplog.records)
    for text in (logged, history.text, listing.text):
        for secret in (PROMPT, ANSWER, KEY):
            assert secret not in text


async def test_the_error_of_all_copies_is_told(tmp_path: Path, model: Gated) -> None:
    model.error = ModelError("model 'local': the hub denies access", "auth")
    async with clustered(tmp_path, MANIFEST % 1) as cluster:
        entry = await status(cluster, "error", 0)
        assert entry["error"]["code"] == "model.auth"
        answer = await cluster.runtime.api.post("/v1/chat/completions", json=BODY)
        assert "the hub denies access" in answer.text
        model.error = None
        await status(cluster, "ready", 1)


OF_A_FILE = """
runtime: {{scheduler: {{state_location: 'file://{store}'}}}}
models:
  - {{from: 'file:m.gguf', name: local, resources: {{cpu: 1}},
     files: [{{path: t.jinja, type: chat_template}}]}}
"""


async def test_an_executor_without_the_files_of_a_model_fetches_them(
    tmp_path: Path, model: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = registry.MODEL_PROVIDERS.load
    monkeypatch.setattr(registry.MODEL_PROVIDERS, "load", lambda name: load("huggingface"))
    send = FileSender.send

    async def sent(self: FileSender, path: Path, written: str) -> SentFile:
        found = await send(self, path, written)
        path.unlink()  # As on a machine that has no such file.
        return found

    monkeypatch.setattr(FileSender, "send", sent)
    (tmp_path / "m.gguf").write_bytes(b"GGUF of a model")
    (tmp_path / "t.jinja").write_text("a template")
    manifest = OF_A_FILE.format(store=tmp_path / "store")
    async with clustered(tmp_path, manifest) as cluster:
        await status(cluster, "ready", 1)
        (spec,) = model.built
        assert Path(spec.model).read_bytes() == b"GGUF of a model"
        assert Path(spec.files[0].path).read_text() == "a template"
    assert not Path(spec.model).exists()
