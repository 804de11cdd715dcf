"""The scheduler blames statements for executors that crash under them."""

import asyncio
from collections.abc import AsyncIterator

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError, StatementRefusedError
from caraway_core.ids import ExecutorId, QueryId, new_query_id
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.statements import Statement
from caraway_core.suspects import End
from caraway_scheduler.dispatch.tasks.quarantine import Quarantine
from tests.kit.clocks import Clock
from tests.kit.stream_double import StreamDouble

E1, E2 = ExecutorId("e1"), ExecutorId("e2")
MEMORY = End("memory", "it used 2.0 GiB where 1.0 GiB are allowed")
KILLER, INNOCENT = (
    Statement("SELECT repeat(name, 1000000000) FROM t", {}),
    Statement("SELECT 1", {}),
)


class Rows(StreamDouble):
    """An answer without rows."""

    schema = pa.schema([])
    reads_only_catalog = True
    written = None

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        raise StopAsyncIteration

    async def aclose(self) -> None:
        return


class Executors:
    """Executor processes that end and return."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.processes: dict[ExecutorId, tuple[str, End | None]] = {
            E1: ("e1.0", None), E2: ("e2.0", None),
        }  # fmt: skip
        self.quarantine = Quarantine(lambda: self.processes, self.clock, settled_s=0.01)
        self.quarantine.look()
        self.losses = 0

    def come_back(self, executor_id: ExecutorId, end: End | None) -> None:
        self.losses += 1
        self.processes[executor_id] = (f"{executor_id}.{self.losses}", end)
        self.quarantine.look()

    async def end_under(
        self, statement: Statement, end: End | None, *executors: ExecutorId
    ) -> None:
        """Run a statement that loses executors, each of which returns."""
        query_id = new_query_id()

        async def run() -> BatchStream:
            for executor_id in executors:
                lost = asyncio.create_task(self.quarantine.lost(query_id, executor_id))
                await asyncio.sleep(0)
                self.come_back(executor_id, end)
                await lost
            raise ExecutionError("all executors were lost")

        await self.quarantine.run_statement(query_id, statement, run)


async def run(quarantine: Quarantine, statement: Statement) -> None:
    async def answer() -> BatchStream:
        return Rows()

    stream = await quarantine.run_statement(new_query_id(), statement, answer)
    assert [batch async for batch in stream] == []


async def test_a_statement_that_crashed_two_executors_runs_on_no_third() -> None:
    executors = Executors()
    with pytest.raises(StatementRefusedError, match="ended the engine twice: memory"):
        await executors.end_under(KILLER, MEMORY, E1, E2, E1)
    assert executors.losses == 2
    with pytest.raises(StatementRefusedError):
        await run(executors.quarantine, KILLER)
    await run(executors.quarantine, INNOCENT)


async def test_a_refusal_ends_with_its_time() -> None:
    executors = Executors()
    with pytest.raises(StatementRefusedError):
        await executors.end_under(KILLER, MEMORY, E1, E2)
    executors.clock.now += 300
    await run(executors.quarantine, KILLER)


async def test_no_statement_is_blamed_for_executors_killed_from_outside() -> None:
    executors = Executors()
    with pytest.raises(ExecutionError, match="all executors were lost"):
        await executors.end_under(INNOCENT, None, E1, E2, E1)
    await run(executors.quarantine, INNOCENT)


async def test_a_statement_that_failed_just_before_the_report_is_a_suspect() -> None:
    executors = Executors()
    for executor_id in (E1, E2):
        with pytest.raises(ExecutionError):
            await executors.end_under(KILLER, None)
        executors.come_back(executor_id, MEMORY)
    with pytest.raises(StatementRefusedError):
        await run(executors.quarantine, KILLER)


async def test_a_statement_that_failed_long_before_is_no_suspect() -> None:
    executors = Executors()
    for executor_id in (E1, E2):
        with pytest.raises(ExecutionError):
            await executors.end_under(INNOCENT, None)
        executors.clock.now += 60
        executors.come_back(executor_id, MEMORY)
    await run(executors.quarantine, INNOCENT)


async def test_an_innocent_statement_finishes_next_to_a_suspect() -> None:
    executors = Executors()
    quarantine, query_id = executors.quarantine, QueryId("innocent")
    may_end = asyncio.Event()

    async def slow() -> BatchStream:
        await may_end.wait()
        return Rows()

    innocent = asyncio.create_task(quarantine.run_statement(query_id, INNOCENT, slow))
    await asyncio.sleep(0)
    with pytest.raises(ExecutionError):
        await executors.end_under(KILLER, MEMORY, E1)
    may_end.set()
    assert [batch async for batch in await innocent] == []
    with pytest.raises(ExecutionError):
        await executors.end_under(KILLER, MEMORY, E2)
    with pytest.raises(StatementRefusedError):
        await run(quarantine, KILLER)
    await run(quarantine, INNOCENT)


async def test_a_statement_that_lost_two_executors_waits_for_a_bounded_time() -> None:
    executors = Executors()
    query_id = new_query_id()

    async def losing() -> BatchStream:
        await executors.quarantine.lost(query_id, E1)
        await executors.quarantine.lost(query_id, E2)
        return Rows()

    stream = await executors.quarantine.run_statement(query_id, INNOCENT, losing)
    assert [batch async for batch in stream] == []
