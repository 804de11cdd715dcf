"""One model of the manifest: loaded, checked, tried again, and closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from caraway_ai.protocols import ChatRequest
from caraway_assist.models.limits import ModelLimits
from caraway_assist.models.loading import ModelKeeper
from caraway_assist.models.metering import CallMeter
from caraway_assist.models.states import ModelState
from caraway_assist.models.tallies import ModelTallies
from caraway_core.errors import ModelAwayError, ModelError
from tests.assist.models.scripted_models import (
    UNAVAILABLE,
    ScriptedBuilds,
    loaded,
    new_history,
)
from tests.kit.deadlines import eventually

PARAMS = "    params: {openai_api_key: k, system_prompt: Be brief, openai_temperature: 0.5}\n"
MODELS = f"models:\n  - from: openai:gpt-4o\n    name: chat\n{PARAMS}"
REQUEST: ChatRequest = {"messages": [{"role": "user", "content": "hi"}]}


class Owner:
    """The models that the one under test belongs to."""

    def __init__(self) -> None:
        self.is_closing = False
        self.tool_error: ModelError | None = None
        self._history = new_history()

    def meter(self, state: ModelState, limits: ModelLimits) -> CallMeter:
        return CallMeter(state, limits, ModelTallies(), self._history)

    def check_tools(self, state: ModelState) -> None:
        if self.tool_error is not None:
            raise self.tool_error


@asynccontextmanager
async def keeping(
    folder: Path, owner: Owner, text: str = MODELS
) -> AsyncIterator[tuple[ModelState, "asyncio.Task[None]"]]:
    """Run the keeper of the first model of a manifest, after its first attempt."""
    manifest, secrets = loaded(folder, text)
    state = ModelState(manifest.models[0])
    task = asyncio.create_task(ModelKeeper(state, owner, secrets, folder).run())
    try:
        async with asyncio.timeout(60):
            await state.settled.wait()
        yield state, task
    finally:
        await ended(task)


async def ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def becomes(state: ModelState, status: str, load_errors: int) -> None:
    """Have the model looked at, and wait for the outcome."""
    state.look.set()

    async def look() -> bool:
        return (state.status, state.load_errors) == (status, load_errors)

    await eventually(look, f"the model is {status} after {load_errors} failures")


async def test_a_model_is_built_with_what_the_manifest_says(
    tmp_path: Path, builds: ScriptedBuilds
) -> None:
    async with keeping(tmp_path, Owner()) as (state, _):
        assert state.status == "ready" and state.was_ready and state.load_duration_ms > 0
        model = state.callable()
        assert model.system_prompt == "Be brief"
        assert model.defaults == {"temperature": 0.5}
        (spec,) = builds.specs
        assert (spec.name, spec.model, spec.params["openai_api_key"]) == ("chat", "gpt-4o", "k")
        answer = await model.chat.chat(REQUEST)
        assert answer["choices"][0]["message"]["content"] == "hello"


async def test_a_model_that_cannot_be_built_is_tried_again_until_it_can(
    tmp_path: Path, builds: ScriptedBuilds
) -> None:
    builds.error = UNAVAILABLE
    async with keeping(tmp_path, Owner()) as (state, _):
        assert (state.status, state.error) == ("error", UNAVAILABLE)
        with pytest.raises(ModelError, match="the provider is away"):
            state.callable()
        await becomes(state, "error", 2)
        builds.error = None
        await becomes(state, "ready", 2)
        assert state.error is None and len(builds.specs) == 3


async def test_an_unexpected_error_hides_its_cause(
    tmp_path: Path, builds: ScriptedBuilds, caplog: pytest.LogCaptureFixture
) -> None:
    builds.error = RuntimeError("a private detail")
    async with keeping(tmp_path, Owner()) as (state, _):
        assert state.error is not None
        assert state.error.message == "model 'chat': internal error; the log has the cause"
        assert "a private detail" in caplog.text


async def test_a_missing_secret_is_named(tmp_path: Path, builds: ScriptedBuilds) -> None:
    text = MODELS.replace("openai_api_key: k", "openai_api_key: '${ env:NO_SUCH_KEY }'")
    async with keeping(tmp_path, Owner(), text) as (state, _):
        assert state.error is not None and state.error.code == "model.auth"
        assert "model 'chat'" in state.error.message and "NO_SUCH_KEY" in state.error.message
        assert builds.specs == [], "nothing is built without its secret"


async def test_a_model_whose_tool_is_missing_is_not_ready(
    tmp_path: Path, builds: ScriptedBuilds
) -> None:
    owner = Owner()
    owner.tool_error = ModelError("no tool 'x'", "invalid")
    async with keeping(tmp_path, owner) as (state, _):
        assert (state.status, state.error) == ("error", owner.tool_error)
        owner.tool_error = None
        await becomes(state, "ready", 1)
        assert len(builds.chats) == 1, "the model itself is kept"


async def test_a_check_that_fails_later_changes_the_state_but_not_the_model(
    tmp_path: Path, builds: ScriptedBuilds
) -> None:
    async with keeping(tmp_path, Owner()) as (state, _):
        (chat,) = builds.chats
        chat.error = UNAVAILABLE
        await becomes(state, "error", 1)
        assert state.was_ready
        await state.callable().chat.chat(REQUEST)
        chat.error = None
        await becomes(state, "ready", 1)
        assert builds.chats == [chat]


async def test_a_replaced_model_finishes_its_calls_before_it_is_closed(
    tmp_path: Path, builds: ScriptedBuilds
) -> None:
    async with keeping(tmp_path, Owner()) as (state, task):
        (chat,) = builds.chats
        chat.gate.clear()
        call = asyncio.create_task(state.callable().chat.chat(REQUEST))
        await chat.is_called.wait()
        task.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not task.done() and not chat.is_closed
        chat.gate.set()
        assert (await call)["choices"][0]["message"]["content"] == "hello"
        await ended(task)
        assert chat.is_closed
        with pytest.raises(ModelAwayError):
            state.callable()


async def test_the_end_of_the_process_waits_for_no_call(
    tmp_path: Path, builds: ScriptedBuilds
) -> None:
    owner = Owner()
    async with keeping(tmp_path, owner) as (state, task):
        (chat,) = builds.chats
        chat.gate.clear()
        call = asyncio.create_task(state.callable().chat.chat(REQUEST))
        await chat.is_called.wait()
        owner.is_closing = True
        async with asyncio.timeout(30):
            await ended(task)
        assert chat.is_closed and not call.done()
        chat.gate.set()
        await call
