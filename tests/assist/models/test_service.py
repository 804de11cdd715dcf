"""The models of a scheduler: kept as the manifest says, found by name, called and closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from caraway_assist.models.service import Models
from caraway_assist.models.states import ModelCaller
from caraway_core.errors import ModelError, NotFoundError
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_serving import spans
from tests.assist.models.scripted_models import (
    UNAVAILABLE,
    FailingChat,
    ScriptedBuilds,
    loaded,
    new_history,
)
from tests.kit.models import USER

ONE = "  - {from: 'openai:gpt-4o', name: one, params: {system_prompt: Be brief}}\n"
TWO = "  - {from: 'openai:gpt-5', name: two}\n"
WORKER = "workers:\n  - {name: both, models: [{from: one}, {from: two}]}\n"
REQUEST = {"messages": USER}


class Service:
    """The models under test."""

    def __init__(self, folder: Path, store: SqliteStateStore) -> None:
        self._folder = folder
        self.history = new_history(captures_output=True)
        self.models = Models(folder / "cache", self.history, store)

    async def apply(self, *models: str, more: str = "") -> None:
        listed = "models:\n" + "".join(models) if models else ""
        await self.models.apply(*loaded(self._folder, listed + more))
        async with asyncio.timeout(60):
            await self.models.wait_settled()


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Service]:
    store = SqliteStateStore(folder / "state.db")
    service = Service(folder, store)
    try:
        yield service
    finally:
        await service.models.aclose()
        await store.aclose()


def caller() -> ModelCaller:
    return ModelCaller(spans.start(None))


async def closed(chat: FailingChat) -> None:
    async with asyncio.timeout(60):
        while not chat.is_closed:
            await asyncio.sleep(0)


async def test_models_and_workers_are_found_by_name(tmp_path: Path, builds: ScriptedBuilds) -> None:
    async with serving(tmp_path) as service:
        await service.apply(ONE, TWO, more=WORKER)
        models = service.models
        assert list(models.names) == ["one", "two", "both"]
        assert [each.name for each in models.members("both")] == ["one", "two"]
        assert [each.name for each in models.members("two")] == ["two"]
        for call in (models.find, models.members, lambda name: models.responses(name, caller())):
            with pytest.raises(NotFoundError, match="model 'three' not found"):
                call("three")
        with pytest.raises(NotFoundError, match="model 'three' not found"):
            await models.chat("three", REQUEST, caller())


async def test_an_answer_has_the_name_and_the_prompt_of_the_manifest(
    tmp_path: Path, builds: ScriptedBuilds
) -> None:
    async with serving(tmp_path) as service:
        await service.apply(ONE)
        answer = await service.models.chat("one", REQUEST, caller())
        assert answer["model"] == "one" and answer["choices"][0]["message"]["content"] == "hello"
        first, second = builds.chats[0].requests[0]["messages"]
        assert (first["role"], first["content"]) == ("system", "Be brief")
        assert second == USER[0]
        stream = service.models.stream("one", REQUEST, caller())
        assert {chunk["model"] async for chunk in stream} == {"one"}


async def test_calls_that_fail_or_are_left_are_recorded(
    tmp_path: Path, builds: ScriptedBuilds
) -> None:
    async with serving(tmp_path) as service:
        await service.apply(ONE)
        (chat,) = builds.chats
        async with aclosing(service.models.stream("one", REQUEST, caller())) as stream:
            await anext(stream)
            await anext(stream)
        assert chat.is_left.is_set(), "leaving a stream ends the call of the provider"
        chat.gate.clear()
        call = asyncio.create_task(service.models.chat("one", REQUEST, caller()))
        chat.is_called.clear()
        await chat.is_called.wait()
        call.cancel()
        await asyncio.wait((call,))
        rows = service.history.table(None).to_pylist()
        outer = [row for row in rows if row["task"] == "ai_chat"]
        assert len(outer) == 2 and "Say hello" in outer[0]["input"]
        assert outer[0]["captured_output"] == "h"
        assert all(row["error_message"] for row in outer)


async def test_a_model_that_did_not_change_is_kept_and_others_are_closed(
    tmp_path: Path, builds: ScriptedBuilds
) -> None:
    async with serving(tmp_path) as service:
        await service.apply(ONE, TWO)
        chats = {spec.name: chat for spec, chat in zip(builds.specs, builds.chats, strict=True)}
        kept = service.models.find("one")
        await service.apply(ONE, TWO.replace("gpt-5", "gpt-6"))
        assert service.models.find("one") is kept
        assert [spec.model for spec in builds.specs[2:]] == ["gpt-6"]
        await closed(chats["two"])
        await service.apply(ONE)
        await closed(builds.chats[2])
        assert not chats["one"].is_closed
        with pytest.raises(NotFoundError):
            service.models.find("two")


async def test_a_worker_keeps_its_turn_while_it_does_not_change(
    tmp_path: Path, builds: ScriptedBuilds
) -> None:
    async with serving(tmp_path) as service:
        await service.apply(ONE, TWO, more=WORKER)
        route = service.models.routes["both"]
        assert service.models.responses("both", caller()) is None
        await service.apply(ONE, TWO, more=WORKER)
        assert service.models.routes["both"] is route
        await service.apply(ONE, TWO)
        assert service.models.routes == {}


async def test_a_model_that_cannot_be_loaded_hinders_no_other(
    tmp_path: Path, builds: ScriptedBuilds
) -> None:
    async with serving(tmp_path) as service:
        await service.apply(ONE)
        builds.error = UNAVAILABLE
        await service.apply(ONE, TWO)
        with pytest.raises(ModelError, match="the provider is away"):
            await service.models.chat("two", REQUEST, caller())
        assert (await service.models.chat("one", REQUEST, caller()))["model"] == "one"


async def test_closing_ends_every_model_and_waits_for_no_call(
    tmp_path: Path, builds: ScriptedBuilds
) -> None:
    async with serving(tmp_path) as service:
        await service.apply(ONE, TWO)
        chat = builds.chats[0]
        chat.gate.clear()
        name = builds.specs[0].name
        call = asyncio.create_task(service.models.chat(name, REQUEST, caller()))
        await chat.is_called.wait()
        async with asyncio.timeout(30):
            await service.models.aclose()
        assert all(each.is_closed for each in builds.chats)
        call.cancel()
        await asyncio.wait((call,))
