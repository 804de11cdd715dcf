"""Statements and tasks go on in another process while native code keeps an executor's threads."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import CatalogMovedError, OutOfMemoryQueryError, UnavailableError
from caraway_core.ids import CatalogVersion, QueryId, new_query_id
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Task
from caraway_core.protocols.wrapped_streams import WrappedStream
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.engines.forking import Forking
from caraway_executor.engines.relief import Relief
from caraway_executor.resources.starving import OwnThreads
from caraway_executor.statements.local import LocalExecutor
from caraway_executor.tasks.relieved import RelievedExecutor
from tests.executor import starvelings
from tests.kit.engine import memory, snapshot
from tests.kit.fragments import rows_of, task

ROUNDS = 10
NUMBERS = pa.schema([("v", pa.int64())])


def test_statements_and_tasks_go_on_beside_native_code() -> None:
    done = subprocess.run(
        [sys.executable, "-m", starvelings.__name__, str(ROUNDS)],
        capture_output=True, text=True, timeout=240, cwd=Path(__file__).parents[3],
        env={**os.environ, "TOKIO_WORKER_THREADS": "2"},
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["answers"] == [[6 + n] for n in range(ROUNDS) for _ in range(2)], done.stderr
    # Native code still keeps both threads, so all of them were answered elsewhere.
    assert found["unfinished"] == 2


class _Elsewhere(Relief):
    """Other processes, where each statement answers 'elsewhere', or fails with `error`."""

    def __init__(self, settings: EngineSettings) -> None:
        super().__init__(settings, time.monotonic, lambda: Forking(lambda _process: None))
        self._there = LocalExecutor(settings, role="apart")
        self._there.install(
            snapshot(
                {"t": memory(w=["elsewhere"]), "v": "SELECT w FROM t", "u": memory(w=["elsewhere"])}
            )
        )
        self.error: Exception | None = None

    async def execute(
        self, catalog: CatalogSnapshot, query_id: QueryId, statement: Statement, *, is_suspect: bool
    ) -> BatchStream:
        if self.error is not None:
            raise self.error
        return await self._there.execute(query_id, statement)

    async def run_task(
        self, catalog: CatalogSnapshot, task: Task, inputs: Any, *, is_suspect: bool
    ) -> BatchStream:
        raise AssertionError("the task was to stay")

    def close(self) -> None:
        self._there.close()


class _NoWork:
    """Threads that nothing asks for work."""

    async def probe(self) -> None:
        raise AssertionError("nobody asks")

    def note_busy(self) -> None:
        pass

    def note_starved(self, *, are_starved: bool) -> None:
        pass


class _Held(_NoWork):
    """Threads that take no work until `is_free` is set."""

    def __init__(self) -> None:
        self.is_free = asyncio.Event()
        self.was_asked = asyncio.Event()

    async def probe(self) -> None:
        self.was_asked.set()
        await self.is_free.wait()


class _EndWaits(WrappedStream):
    """A stream whose rows come at once, and whose end comes after `ends` is set."""

    def __init__(self, stream: BatchStream, ends: asyncio.Event) -> None:
        super().__init__(stream)
        self._has_begun = False
        self._ends = ends

    is_at_end = False

    async def __anext__(self) -> pa.RecordBatch:
        if self._has_begun:
            await self._ends.wait()
        self._has_begun = True
        return await super().__anext__()


class _WhoseEndsWait(LocalExecutor):
    """An executor of this process whose threads have computed the rows, and nothing after."""

    def __init__(self, settings: EngineSettings) -> None:
        super().__init__(settings)
        self.ends = asyncio.Event()

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        return _EndWaits(await super().execute(query_id, statement), self.ends)


@asynccontextmanager
async def ends_waiting() -> AsyncIterator[
    tuple[RelievedExecutor, OwnThreads, _Held, asyncio.Event]
]:
    """Make an executor of which statements have their rows, and their end once it is set."""
    settings, held = EngineSettings(2), _Held()
    threads, local, other = OwnThreads(held), _WhoseEndsWait(settings), _Elsewhere(settings)
    local.install(snapshot({"t": memory(w=["here"])}))
    try:
        yield RelievedExecutor(local, other, threads, set()), threads, held, local.ends
    finally:
        threads.close()
        other.close()
        local.close()


@asynccontextmanager
async def starved() -> AsyncIterator[tuple[RelievedExecutor, _Elsewhere]]:
    """Make an executor whose threads count as starved, although they answer."""

    settings = EngineSettings(2)
    threads = OwnThreads(_NoWork())
    threads.are_starved = True
    local, other = LocalExecutor(settings), _Elsewhere(settings)
    local.install(
        snapshot({"t": memory(w=["here"]), "v": "SELECT w FROM t", "u": memory(w=["here"])})
    )
    try:
        yield RelievedExecutor(local, other, threads, set()), other
    finally:
        threads.close()
        other.close()
        local.close()


async def test_rows_whose_end_waits_for_native_code_come_from_elsewhere() -> None:
    async with ends_waiting() as (executor, threads, held, _):
        asked = asyncio.ensure_future(answer(executor, "SELECT w FROM t"))
        await held.was_asked.wait()
        threads._starve(asyncio.get_running_loop().time())
        assert await asked == ["elsewhere"]


async def test_rows_do_not_wait_for_their_end_while_threads_take_work() -> None:
    async with ends_waiting() as (executor, _, held, _ends):
        stream = await executor.execute(new_query_id(), Statement("SELECT w FROM t", {}))
        held.is_free.set()
        assert (await anext(aiter(stream)))[0].to_pylist() == ["here"]
        await stream.aclose()


async def test_an_end_that_comes_is_not_lost() -> None:
    async with ends_waiting() as (executor, _, held, ends):
        asked = asyncio.ensure_future(answer(executor, "SELECT w FROM t"))
        await held.was_asked.wait()
        ends.set()
        assert await asked == ["here"]


async def answer(executor: RelievedExecutor, sql: str, **fields: Any) -> list[Any]:
    stream = await executor.execute(new_query_id(), Statement(sql, {}, **fields))
    return [value for batch in [each async for each in stream] for value in batch[0].to_pylist()]


async def test_new_statements_run_elsewhere_and_background_work_stays() -> None:
    async with starved() as (executor, _):
        assert await answer(executor, "SELECT w FROM t") == ["elsewhere"]
        assert await answer(executor, "SELECT w FROM t", in_background=True) == ["here"]


async def test_statements_over_rows_that_only_this_process_has_stay() -> None:
    async with starved() as (executor, _):
        await answer(executor, "INSERT INTO u VALUES ('new')", writable=frozenset({"u"}))
        assert sorted(await answer(executor, "SELECT w FROM u")) == ["here", "new"]
        assert await answer(executor, "SELECT w FROM v") == ["elsewhere"]
        await answer(executor, "INSERT INTO t VALUES ('new')", writable=frozenset({"t"}))
        for text in ("SELECT w FROM T", "SELECT * FROM v"):
            assert sorted(await answer(executor, text)) == ["here", "new"]


@pytest.mark.parametrize(
    "error",
    [
        CatalogMovedError(CatalogVersion(2)),
        OutOfMemoryQueryError("full"),
        UnavailableError("away"),
    ],
)
async def test_what_cannot_run_elsewhere_waits_here(error: Exception) -> None:
    async with starved() as (executor, other):
        other.error = error
        assert await answer(executor, "SELECT w FROM t") == ["here"]


async def test_tasks_with_large_inputs_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caraway_executor.tasks.relieved._MOST_INPUT_BYTES", 100)
    async with starved() as (executor, _):
        rows = rows_of("t", pa.table({"v": list(range(100))}))
        stream = await executor.run_task(task("SELECT sum(v) FROM $t", {"$t": NUMBERS}), [rows])
        assert [each[0].to_pylist() async for each in stream] == [[4950]]


async def test_a_task_without_a_slot_begins_elsewhere() -> None:
    async with starved() as (executor, _):
        executor._threads.are_starved = False
        asked, rows = (
            task("SELECT sum(v) FROM $t", {"$t": NUMBERS}),
            rows_of("t", pa.table({"v": [1]})),
        )
        with pytest.raises(AssertionError, match="was to stay"):
            await executor.run_task(asked, [rows], is_here=False)
        stream = await executor.run_task(asked, [rows])
        assert [each[0].to_pylist() async for each in stream] == [[1]]


@pytest.mark.parametrize("is_here", [True, False])
async def test_a_task_of_an_earlier_catalog_stays(is_here: bool) -> None:
    async with starved() as (executor, _):
        asked = task("SELECT sum(v) FROM $t", {"$t": NUMBERS})
        local = executor._local
        local.prepare(snapshot({"t": memory(w=["here"])}, version=asked.catalog_version + 1))
        local.publish()
        rows = rows_of("t", pa.table({"v": [1, 2]}))
        stream = await executor.run_task(asked, [rows], is_here=is_here)
        assert [each[0].to_pylist() async for each in stream] == [[3]]
