"""Copies of a model over executors in this process: spread, moved and replaced."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from caraway_assist.hosting import copies as copies_module
from caraway_assist.hosting.copies import Copies, HostPlaces
from caraway_assist.hosting.placing import Candidate
from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.ids import ExecutorId
from caraway_core.protocols.hosting import CopyOrder
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.models import model_copies
from tests.kit.deadlines import eventually
from tests.kit.hosted import Script, ScriptedSpec
from tests.kit.in_process_fleet import InProcessFleet


@dataclass
class Executors:
    """Executors as the copies of a model see them; a test loses and drains them."""

    fleet: InProcessFleet
    ids: list[ExecutorId]
    draining: set[ExecutorId] = field(default_factory=set)
    copies: Copies = field(init=False)

    def candidates(self) -> Sequence[Candidate]:
        return [Candidate(each, 2, 0) for each in self.ids if each not in self.draining]

    def lost(self, executor_id: ExecutorId, _cause: str) -> None:
        if executor_id in self.ids:
            self.ids.remove(executor_id)

    async def lose(self, executor_id: ExecutorId) -> None:
        self.lost(executor_id, "killed")
        await self.fleet.lose(executor_id)

    async def states(self, *wanted: str) -> None:
        """Wait until the copies have these states."""

        async def look() -> bool:
            return sorted(view.state for view in self.copies.views()) == sorted(wanted)

        await eventually(look, f"copies are {wanted}")


@asynccontextmanager
async def hosted(
    script: Script, executors: int = 2, count: int = 2, cores: int = 1
) -> AsyncIterator[Executors]:
    ids = [ExecutorId(f"e{number}") for number in range(1, executors + 1)]
    fleet = InProcessFleet(ids, EngineSettings(2))
    made = Executors(fleet, ids)
    places = HostPlaces(made.candidates, made.draining.__contains__, made.lost, Counter)
    made.copies = Copies(fleet, places, CopyOrder("s1", ScriptedSpec(script), cores), count)
    running = tasks.begin(made.copies.run())
    try:
        yield made
    finally:
        running.cancel()
        await asyncio.wait((running,))
        await fleet.aclose()


async def ask(copies: Copies, request: bytes = b"?") -> list[bytes]:
    return [part async for part in copies.call(request)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies_module, "_LOADING_S", 0.01)
    monkeypatch.setattr(copies_module, "_EVERY_S", 0.05)
    monkeypatch.setattr(model_copies, "_AGAIN", Delays(0.01, 0.01))


async def test_calls_go_to_the_copy_with_the_fewest_calls() -> None:
    script = Script()
    async with hosted(script) as executors:
        await executors.states("ready", "ready")
        script.may_begin.clear()
        calls = [tasks.begin(ask(executors.copies)) for _ in range(6)]

        async def spread() -> bool:
            return [view.active for view in executors.copies.views()] == [3, 3]

        await eventually(spread, "three calls on each copy")
        script.may_begin.set()
        assert await asyncio.gather(*calls) == [[b"one", b"two"]] * 6
        assert executors.copies.facts == b"facts"
    assert script.built == script.closed == 2


async def test_calls_of_a_lost_executor_move_before_the_first_part() -> None:
    script = Script()
    async with hosted(script) as executors:
        await executors.states("ready", "ready")
        script.may_begin.clear()
        calls = [tasks.begin(ask(executors.copies)) for _ in range(4)]

        async def begun() -> bool:
            return len(script.asked) == 4

        await eventually(begun, "all calls have begun")
        await executors.lose(ExecutorId("e1"))
        script.may_begin.set()
        assert await asyncio.gather(*calls) == [[b"one", b"two"]] * 4
        assert executors.copies.moved == 2
        await executors.states("ready")


async def test_an_answer_that_has_begun_ends_with_an_error() -> None:
    script = Script()
    script.may_go_on.clear()
    async with hosted(script, count=1) as executors:
        await executors.states("ready")
        (place,) = executors.copies.executors
        async with aclosing(executors.copies.call(b"?")) as parts:
            assert await anext(parts) == b"one"
            await executors.lose(place)
            with pytest.raises(ModelAwayError, match="in the middle of the answer"):
                await anext(parts)
        assert executors.copies.moved == 0


async def test_a_lost_copy_is_made_anew_and_its_call_waits_for_it() -> None:
    script = Script()
    async with hosted(script, count=1) as executors:
        await executors.states("ready")
        (place,) = executors.copies.executors
        script.may_begin.clear()
        call = tasks.begin(ask(executors.copies))

        async def begun() -> bool:
            return bool(script.asked)

        await eventually(begun, "the call has begun")
        script.may_begin.set()
        script.may_load.clear()
        script.may_begin.clear()
        await executors.lose(place)
        await executors.states("loading")

        async def loading() -> bool:
            return [each.progress for each in executors.copies.views()] == ["loading 1 of 2"]

        await eventually(loading, "the first of two files is loading")
        script.may_load.set()
        script.may_begin.set()
        assert await call == [b"one", b"two"]
        assert place not in executors.copies.executors


async def test_a_request_that_ends_models_moves_only_twice() -> None:
    script = Script(dies=10)
    async with hosted(script, executors=3, count=3) as executors:
        await executors.states("ready", "ready", "ready")
        with pytest.raises(ModelAwayError, match="again and again"):
            await ask(executors.copies)
        assert len(script.asked) == 3
        script.dies = 0
        await executors.states("ready", "ready", "ready")
        assert await ask(executors.copies) == [b"one", b"two"]


async def test_a_copy_moves_away_from_an_executor_that_drains() -> None:
    script = Script()
    async with hosted(script, count=1) as executors:
        await executors.states("ready")
        (place,) = executors.copies.executors
        script.may_load.clear()
        executors.draining.add(place)
        await executors.states("loading", "ready")
        assert await ask(executors.copies) == [b"one", b"two"]
        script.may_load.set()
        await executors.states("ready")
        assert place not in executors.copies.executors
        assert script.closed == 1


async def test_why_there_is_no_copy_is_told() -> None:
    async with hosted(Script(), cores=3) as executors:
        with pytest.raises(ModelAwayError, match="no executor is large enough"):
            await ask(executors.copies)
    broken = Script(load_error=ModelError("model 'double': no GGUF file", "invalid"))
    async with hosted(broken) as executors:
        with pytest.raises(ModelError, match="no GGUF file"):
            await ask(executors.copies)
        broken.load_error = None
        await executors.states("ready", "ready")
        assert await ask(executors.copies) == [b"one", b"two"]


async def test_closing_an_answer_ends_the_call() -> None:
    script = Script()
    script.may_go_on.clear()
    async with hosted(script, count=1) as executors:
        await executors.states("ready")
        async with aclosing(executors.copies.call(b"?")) as parts:
            assert await anext(parts) == b"one"

        async def left() -> bool:
            return script.left == 1

        await eventually(left, "the model's call ended")
