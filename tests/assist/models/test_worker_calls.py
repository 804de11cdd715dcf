"""Calls of workers over HTTP, with providers that fail."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest
from starlette.responses import JSONResponse

from tests.kit.models import USER, ServedModels, served
from tests.kit.scripted_provider import ScriptedProvider, chunk, completion, scripted

DONE = b"data: [DONE]\n\n"
BROKEN = JSONResponse({"error": {"message": "no"}}, 500)
WORKERS = """
workers:
  - {name: spare, models: [{from: a, order: 1}, {from: b, order: 2}]}
  - {name: turns, models: [{from: a}, {from: b}]}
"""


@dataclass(frozen=True, slots=True)
class Two:
    """Two models with a provider each, and workers over them."""

    caraway: ServedModels
    a: ScriptedProvider
    b: ScriptedProvider

    async def ask(self, model: str = "spare", **more: Any) -> Any:
        create: Any = self.caraway.client.chat.completions.create
        return await create(model=model, messages=USER, **more)

    async def text(self, model: str = "spare") -> str:
        stream = await self.ask(model, stream=True)
        return "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])


@asynccontextmanager
async def two(folder: Path, more: str = "", params: str = "") -> AsyncIterator[Two]:
    async with AsyncExitStack() as stack:
        a = await stack.enter_async_context(scripted())
        b = await stack.enter_async_context(scripted())
        a.answers, b.answers = [completion("of a")], [completion("of b")]
        a.streams = [[chunk("of a"), chunk(finish="stop"), DONE]]
        b.streams = [[chunk("of b"), chunk(finish="stop"), DONE]]
        models = "".join(
            f"  - from: openai:x\n    name: {name}\n    params: {{endpoint: '{each.url}', "
            f"openai_api_key: k, max_retries: 0, {params}}}\n"
            for name, each in (("a", a), ("b", b))
        )
        text = f"models:\n{models}{WORKERS}{more}"
        yield Two(await stack.enter_async_context(served(folder, text)), a, b)


def tasks(caraway: ServedModels) -> list[tuple[str, dict[str, str]]]:
    rows = caraway.history.table(None).to_pylist()
    return [(row["task"], dict(row["labels"])) for row in rows]


async def test_models_take_turns_and_the_answer_names_the_worker(tmp_path: Path) -> None:
    async with two(tmp_path) as over:
        said = []
        for _ in range(4):
            answer = await over.ask("turns")
            assert answer.model == "turns"
            said.append(answer.choices[0].message.content)
        assert said == ["of a", "of b", "of a", "of b"]
        assert await over.text("turns") == "of a"
        answer = await over.caraway.client.responses.create(model="turns", input="hi")
        assert (answer.output_text, answer.model) == ("of b", "turns")
        labels = [labels for task, labels in tasks(over.caraway) if task == "ai_chat"]
        assert [each["routed_to"] for each in labels] == ["a", "b"] * 3
        assert {each["model"] for each in labels} == {"turns"}
        assert over.caraway.models.tallies.worker_requests == {("turns", "a"): 3, ("turns", "b"): 3}


async def test_another_model_answers_where_one_fails(tmp_path: Path) -> None:
    async with two(tmp_path) as over:
        over.a.answers = [BROKEN, completion("of a")]
        assert (await over.ask()).choices[0].message.content == "of b"
        # It rests, and is not asked.
        assert (await over.ask()).choices[0].message.content == "of b"
        assert len(over.a.requests) == 1
        assert over.caraway.models.tallies.worker_failovers == {("spare", "a"): 1}
        over.caraway.models.routes["spare"].succeeded("a")
        assert (await over.ask()).choices[0].message.content == "of a"


async def test_a_stream_is_begun_anew_before_its_first_token(tmp_path: Path) -> None:
    async with two(tmp_path, params="silence_timeout: 300ms") as over:
        silent = asyncio.Event()
        for start in (
            [b'data: {"error": {"message": "overloaded", "code": 500}}\n\n'],
            [chunk(role="assistant"), b"data: not json\n\n"],
            [chunk("", role="assistant"), silent],
        ):
            over.caraway.models.routes["spare"].succeeded("a")
            over.a.streams = [start]
            assert await over.text() == "of b"
        assert len(over.a.requests) == 3
        silent.set()


async def test_no_stream_is_begun_anew_after_its_first_token(tmp_path: Path) -> None:
    async with two(tmp_path) as over:
        over.a.streams = [[chunk("of "), b"data: not json\n\n"]]
        with pytest.raises(openai.APIError, match=r"damaged|malformed|JSON"):
            await over.text()
        assert over.b.requests == []
        assert await over.text() == "of b"


async def test_requests_that_are_wrong_are_not_passed_on(tmp_path: Path) -> None:
    async with two(tmp_path) as over:
        wrong = {"error": {"message": "bad", "type": "invalid_request_error", "param": "x"}}
        over.a.answers = [JSONResponse(wrong, 400)]
        with pytest.raises(openai.BadRequestError):
            await over.ask()
        assert over.b.requests == []
        long = {"error": {"message": "This model's maximum context length is 10 tokens",
                          "code": "context_length_exceeded"}}  # fmt: skip
        over.a.answers = [JSONResponse(long, 400)]
        assert (await over.ask()).choices[0].message.content == "of b"
        assert not over.caraway.models.routes["spare"].rests("a")


async def test_a_worker_without_a_model_says_why(tmp_path: Path) -> None:
    async with two(tmp_path) as over:
        over.a.answers, over.b.answers = [BROKEN], [JSONResponse({}, 429, {"retry-after": "7"})]
        with pytest.raises(openai.RateLimitError) as caught:
            await over.ask()
        message = str(caught.value)
        assert "worker 'spare': every model failed: model 'a': " in message
        assert "model 'b': " in message
        assert caught.value.response.headers["retry-after"] == "7"
        for state in over.caraway.models.states.values():
            state.status = "initializing"
        with pytest.raises(openai.InternalServerError, match="none of its models is ready") as away:
            await over.ask()
        assert away.value.status_code == 503
        with pytest.raises(openai.InternalServerError, match="none of its models is ready"):
            await over.text()
        with pytest.raises(openai.NotFoundError):
            await over.ask("nobody")
