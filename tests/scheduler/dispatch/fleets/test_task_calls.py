"""Tasks over channels, and on Ray where these cannot carry them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pyarrow as pa
import pytest

from caraway_core.concurrency import tasks
from caraway_core.errors import ExecutorLostError, InvalidQueryError, PartLostError
from caraway_core.protocols import wire
from caraway_core.protocols.fleet import ExchangePart, Input, Split
from caraway_engine.stages.inputs import INPUT_PREFIX
from caraway_executor.answers import kept_tables
from caraway_scheduler.dispatch.fleets.answers import Answers
from caraway_scheduler.dispatch.fleets.channel_calls import ChannelCalls
from caraway_scheduler.dispatch.fleets.parts import Carried, Held, fetched, handles
from caraway_scheduler.dispatch.fleets.peers import NO_ANSWER, Peer
from caraway_scheduler.dispatch.fleets.task_calls import TaskCalls
from tests.kit.deadlines import eventually
from tests.kit.engine import memory
from tests.kit.fragments import task
from tests.kit.reached_executors import ONE, TOKEN, Actor, Remote, executor
from tests.kit.workers import catalog

ROWS = pa.schema([("v", pa.int64())])
C0 = pa.schema([("c0", pa.int64())])
EVERYTHING = task("SELECT v FROM t", {"t": ROWS})
MUCH = 1024
NOTHING = 0
"""The most bytes that are carried."""


@asynccontextmanager
async def peers() -> AsyncIterator[tuple[Peer, Remote, Actor]]:
    """Run an executor with three rows, to which there is a channel."""
    async with executor() as (actor, server):
        await asyncio.to_thread(actor._worker.install, catalog({"t": memory(v=[1, 2, 3])}))
        direct = ChannelCalls(ONE, server.place)
        await direct.connect(TOKEN)
        remote = Remote(actor)
        gone = asyncio.get_running_loop().create_future()
        peer = Peer(ONE, remote, gone, direct=direct, carries_tasks=True)
        try:
            yield peer, remote, actor
        finally:
            direct.close(NO_ANSWER)


class Holding:
    """Holds the tasks of an executor until they are cancelled."""

    def __init__(self, actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = asyncio.Event()
        self._is_over = False
        monkeypatch.setattr(actor._worker._relieving, "run_task", self._wait)

    async def _wait(self, *_arguments: object, **_options: object) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self._is_over = True

    async def is_over(self) -> bool:
        return self._is_over


def calls() -> TaskCalls:
    return TaskCalls(Answers(lambda _peer, exc: pytest.fail(str(exc))))


async def numbers(*parts: ExchangePart) -> list[int]:
    tables = [await fetched(each) for each in handles([Input("$x", C0, parts)])]
    return sorted(each for table in tables for each in table.column(0).to_pylist())


async def test_small_tables_travel_without_ray() -> None:
    async with peers() as (peer, remote, _):
        made = await calls().run_task(peer, "q/1", EVERYTHING, (), MUCH)
        (part,) = made.parts
        assert isinstance(part.handle, Carried)
        assert (part.rows, part.size_bytes, part.executor_id) == (3, 24, ONE)
        total = task("SELECT sum(c0) AS s FROM $x", {"$x": C0})
        brought = [Input(INPUT_PREFIX + "x", C0, made.parts * 2)]
        again = await calls().run_task(peer, "q/2", total, brought, MUCH)
        assert await numbers(*again.parts) == [12]
        page = await calls().open_task(peer, "q/3", total, brought)
        assert page.is_last
        assert [each.to_pylist() for each in page.batches] == [[{"c0": 12}]]
        assert remote.calls == []


async def test_each_partition_is_carried() -> None:
    work = task("SELECT v FROM t", {"t": ROWS}, split=Split((0,), 4))
    async with peers() as (peer, remote, _):
        made = await calls().run_task(peer, "q/1", work, (), MUCH)
        assert len(made.parts) == 4
        assert await numbers(*made.parts) == [1, 2, 3]
        assert remote.calls == []


async def test_large_tables_are_taken_through_ray_and_not_made_twice() -> None:
    work = task("SELECT v FROM t", {"t": ROWS}, split=Split((0,), 4))
    async with peers() as (peer, remote, actor):
        made = await calls().run_task(peer, "q/1", work, (), NOTHING)
        assert all(isinstance(each.handle, Held) for each in made.parts)
        assert sum(each.rows for each in made.parts) == 3
        assert await numbers(*made.parts) == [1, 2, 3]
        assert remote.calls == ["run"]
        assert len(actor._worker.kept) == 0
        described = await actor._worker.describe()
        assert described.finished_tasks == 1


@pytest.mark.parametrize("lack", ["channel", "open channel", "release", "input on Ray"])
async def test_ray_runs_what_a_channel_cannot(lack: str) -> None:
    async with peers() as (peer, remote, _):
        first = await calls().run_task(
            peer, "q/1", EVERYTHING, (), NOTHING if "input" in lack else MUCH
        )
        if lack == "channel":
            peer.direct = None
        elif lack == "open channel":
            assert peer.direct is not None
            peer.direct.close("it is away")
        elif lack == "release":
            peer.carries_tasks = False
        remote.calls.clear()
        total = task("SELECT sum(c0) AS s FROM $x", {"$x": C0})
        brought = [Input(INPUT_PREFIX + "x", C0, first.parts)]
        made = await calls().run_task(peer, "q/2", total, brought, MUCH)
        assert isinstance(made.parts[0].handle, Held)
        assert await numbers(*made.parts) == [6]
        page = await calls().open_task(peer, "q/3", total, brought)
        assert [each.to_pylist() for each in page.batches] == [[{"c0": 6}]]
        assert remote.calls == ["run", "open_task"]


async def test_an_error_of_the_task_is_that_of_the_call() -> None:
    work = task("SELECT 10 / v AS n FROM $x", {"$x": ROWS})
    zeros = pa.table({"v": [0]})
    async with peers() as (peer, _, _):
        part = ExchangePart(Carried(wire.pack_table(zeros)), ONE, 1, 8)
        brought = [Input(INPUT_PREFIX + "x", ROWS, (part,))]
        with pytest.raises(InvalidQueryError, match="zero"):
            await calls().run_task(peer, "q/1", work, brought, MUCH)


async def test_a_call_ends_with_its_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    async with peers() as (peer, _, actor):
        holding = Holding(actor, monkeypatch)
        waiting = tasks.begin(calls().run_task(peer, "q/1", EVERYTHING, (), MUCH))
        await holding.begun.wait()
        peer.let_go()
        with pytest.raises(ExecutorLostError, match=NO_ANSWER):
            await waiting
        await eventually(holding.is_over, "the task ends with its channel")


async def test_whoever_leaves_ends_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    async with peers() as (peer, remote, actor):
        holding = Holding(actor, monkeypatch)
        waiting = tasks.begin(calls().run_task(peer, "q/1", EVERYTHING, (), MUCH))
        await holding.begun.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert remote.calls == ["cancel"]
        await eventually(holding.is_over, "the task is cancelled")


async def test_cancelled_calls_leave_no_tables() -> None:
    async with peers() as (_, _, actor):
        actor._worker.kept.keep("q/1", [pa.table({"v": [1]})])
        await actor.cancel("q/1")
        assert len(actor._worker.kept) == 0


async def test_tables_that_are_gone_are_a_lost_input(monkeypatch: pytest.MonkeyPatch) -> None:
    # The runner makes them again.
    monkeypatch.setattr(kept_tables, "KEPT_S", 0.0)
    async with peers() as (peer, _, _):
        with pytest.raises(PartLostError, match="not taken in time"):
            await calls().run_task(peer, "q/1", EVERYTHING, (), NOTHING)
