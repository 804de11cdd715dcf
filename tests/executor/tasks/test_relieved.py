"""Statements and tasks go on in another process while native code keeps an executor's threads."""

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
