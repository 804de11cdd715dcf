"""The dispatch of one process: its counters, its sessions, and the calls that it passes on."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.ids import CatalogVersion, ExecutorId, QueryId, TableName
from caraway_core.protocols.dispatch import ExecutorStatus
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from tests.kit.stream_double import StreamDouble

Q = QueryId("q")
SELECT = Statement("SELECT 1", {})
BATCH = pa.record_batch({"n": [1]})


class Stream(StreamDouble):
    schema = BATCH.schema
    reads_only_catalog = True
    written = None

    def __init__(self, *steps: pa.RecordBatch | BaseException) -> None:
        self._steps = iter(steps)
        self.is_closed = False

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        step = next(self._steps, None)
        if step is None:
            raise StopAsyncIteration
        if isinstance(step, BaseException):
            raise step
        return step

    async def aclose(self) -> None:
        self.is_closed = True


class Executor:
    """An executor of a script."""

    memory_used_bytes = 0
    holds: tuple[TableName, ...] = ()

    def __init__(self) -> None:
        self.streams: list[Stream | BaseException] = []
        self.seen: list[Statement] = []
        self.views: Mapping[TableName, Any] = {}
        self.install_raises: BaseException | None = None
        self.pinned_during: list[int] = []
        self.is_closed = False

    def install(self, snapshot: CatalogSnapshot) -> Mapping[TableName, str]:
        if self.install_raises is not None:
            raise self.install_raises
        return {TableName("bad"): "no columns"}

    async def execute(self, query_id: QueryId, statement: Statement) -> Stream:
        self.seen.append(statement)
        answer = self.streams.pop(0) if self.streams else Stream(BATCH)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def close(self) -> None:
        self.is_closed = True


def snapshot(version: int) -> CatalogSnapshot:
    tables: Any = {TableName(f"t{version}"): None}
    return CatalogSnapshot(CatalogVersion(version), tables, {})


def made() -> tuple[InProcessDispatch, Executor]:
    executor: Any = Executor()
    return InProcessDispatch(executor, ExecutorId("here"), 2, 1_000), executor


def status(dispatch: InProcessDispatch) -> ExecutorStatus:
    (found,) = dispatch.executors()
    return found


def counts(dispatch: InProcessDispatch) -> tuple[int, int, int]:
    found = status(dispatch)
    return found.active_tasks, found.finished_tasks, found.failed_tasks


async def test_executor_is_ready_once_it_has_a_catalog() -> None:
    dispatch, executor = made()
    assert not status(dispatch).is_ready and status(dispatch).reason
    executor.install_raises = OSError("the engine is gone")
    with pytest.raises(OSError, match="gone"):
        await dispatch.install(snapshot(1))
    assert not status(dispatch).is_ready
    executor.install_raises = None
    assert await dispatch.install(snapshot(2)) == {"bad": "no columns"}
    assert status(dispatch).is_ready and status(dispatch).catalog_version == 2
    assert (status(dispatch).cores, status(dispatch).memory_bytes) == (2, 1_000)


@pytest.mark.parametrize(
    ("ending", "expected"),
    [("read", (0, 1, 0)), ("closed", (0, 0, 1)), ("failed", (0, 0, 1)), ("refused", (0, 0, 1))],
)
async def test_statement_is_counted_once_however_it_ends(
    ending: str, expected: tuple[int, int, int]
) -> None:
    dispatch, executor = made()
    await dispatch.install(snapshot(1))
    if ending == "refused":
        executor.streams = [ValueError("broken")]
        with pytest.raises(ValueError, match="broken"):
            await dispatch.execute(Q, SELECT)
    else:
        inner = Stream(BATCH, *([ValueError("broken")] if ending == "failed" else []))
        executor.streams = [inner]
        stream = await dispatch.execute(Q, SELECT)
        assert counts(dispatch) == (1, 0, 0) and len(dispatch.under_way()) == 1
        if ending == "read":
            assert [batch async for batch in stream] == [BATCH]
        elif ending == "failed":
            with pytest.raises(ValueError, match="broken"):
                [batch async for batch in stream]
        await stream.aclose()
        await stream.aclose()
        assert inner.is_closed
    assert counts(dispatch) == expected
    assert dispatch.under_way() == []


async def test_stream_hears_that_its_reader_takes_plain_strings() -> None:
    dispatch, executor = made()
    await dispatch.install(snapshot(1))
    inner = Stream(BATCH)
    executor.streams = [inner]
    stream = await dispatch.execute(Q, SELECT)
    stream.traits.takes_plain = True
    assert inner.traits.takes_plain


async def test_statement_during_an_installation_may_read_either_catalog() -> None:
    dispatch, executor = made()
    await dispatch.install(snapshot(1))
    executor.install_raises = OSError("the engine is gone")
    with pytest.raises(OSError, match="gone"):
        await dispatch.install(snapshot(2))
    stream = await dispatch.execute(Q, SELECT)
    (under_way,) = dispatch.under_way()
    assert [set(each) for each in under_way.catalogs] == [{"t1"}, {"t2"}]
    await stream.aclose()


async def test_statement_takes_the_logs_along_and_its_own_count_more() -> None:
    dispatch, executor = made()
    spec: Any = type("Spec", (), {"key": "k1"})()
    other: Any = type("Spec", (), {"key": "k2"})()
    log: Any = ("entry",)
    await dispatch.execute(Q, SELECT)
    dispatch.follow(spec, log)
    dispatch.follow(other, log)
    await dispatch.execute(Q, SELECT)
    await dispatch.execute(Q, Statement("SELECT 1", {}, logs={"k1": ()}))
    dispatch.follow(spec, ())
    dispatch.follow(other, ())
    await dispatch.execute(Q, SELECT)
    assert [dict(statement.logs) for statement in executor.seen] == [
        {}, {"k1": log, "k2": log}, {"k1": (), "k2": log}, {},
    ]  # fmt: skip


async def test_closing_closes_the_executor_and_progress_is_unknown() -> None:
    dispatch, executor = made()
    assert dispatch.progress(Q) is None
    await dispatch.aclose()
    assert executor.is_closed
