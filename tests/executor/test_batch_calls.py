"""Batch calls as tasks: over one executor, and over two of a cluster."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from caraway_core.errors import ExecutionError
from caraway_core.ids import CatalogVersion, ExecutorId, new_query_id
from caraway_core.protocols.fleet import ExchangePart, Input, Split, Task
from caraway_core.work import BatchCall, BatchFunction
from caraway_engine.execution.settings import EngineSettings
from tests.kit.deadlines import eventually
from tests.kit.engine import memory
from tests.kit.fragments import rows_of, task
from tests.kit.in_process_fleet import InProcessFleet
from tests.kit.workers import catalog, worker

NUMBERS = pa.schema([("v", pa.int64())])
SUMMED = pa.schema([("c0", pa.int64()), ("c1", pa.string())])


@dataclass(frozen=True, slots=True)
class Times(BatchCall):
    """Multiplies a column, as an embedding makes a vector of a text."""

    factor: int

    def build(self) -> BatchFunction:
        def called(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            thread = threading.current_thread().name
            for batch in batches:
                values = pc.multiply(batch.column(0), self.factor)
                names = pa.array([thread] * batch.num_rows)
                yield pa.RecordBatch.from_arrays([values, names], ["times", "thread"])

        return called


@dataclass(frozen=True, slots=True)
class Whole(BatchCall):
    """Reads all rows before it gives one, as the building of an index does."""

    def build(self) -> BatchFunction:
        def called(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            total = sum(pc.sum(batch.column(0)).as_py() or 0 for batch in batches)
            yield pa.RecordBatch.from_pydict({"a": [total], "b": ["all"]})

        return called


@dataclass(frozen=True, slots=True)
class Failing(BatchCall):
    where: str

    def build(self) -> BatchFunction:
        if self.where == "build":
            raise ValueError("no model 'm' here")

        def called(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from ()
            if self.where == "call":
                raise ZeroDivisionError("in the call")
            yield from batches

        return called


def calling(call: BatchCall, split: Split | None = None) -> Task:
    return Task(new_query_id(), "call", "here", CatalogVersion(1), call, SUMMED, split=split)


async def test_two_executors_call_over_what_stages_left_there() -> None:
    fleet = InProcessFleet([ExecutorId("e1"), ExecutorId("e2")], EngineSettings(2))
    try:
        installed = catalog({"t": memory(v=[1, 2, 3])})
        for executor_id in map(ExecutorId, ("e1", "e2")):
            assert not await fleet.install(executor_id, installed)
        scan = task("SELECT v FROM t", {"t": NUMBERS})
        parts: list[ExchangePart] = []
        for number, executor_id in enumerate(map(ExecutorId, ("e1", "e2"))):
            made = await fleet.run(executor_id, scan, ())
            inputs = [Input("rows", scan.schema, made.parts)]
            called = await fleet.run(executor_id, calling(Times(10 + number)), inputs)
            parts += called.parts
        assert [each.executor_id for each in parts] == ["e1", "e2"]
        stream = await fleet.stream(
            ExecutorId("e2"), calling(Whole()), [Input("all", SUMMED, tuple(parts))]
        )
        rows = [row async for batch in stream for row in batch.to_pylist()]
        assert rows == [{"c0": 60 + 66, "c1": "all"}]
        (fetched,) = await fleet.fetch([Input("all", SUMMED, tuple(parts))])
        assert {name for each in fetched.tables for name in each["c1"].to_pylist()} != {
            threading.main_thread().name
        }
    finally:
        await fleet.aclose()


async def test_rows_of_a_call_are_parted_by_hash() -> None:
    of = worker({})
    rows = rows_of("t", pa.table({"v": pa.arange(0, 100)}))
    report, tables = await of.run(calling(Times(2), Split((0,), 3)), [rows])
    assert len(tables) == 3 and sum(size for size, _ in report.sizes) == 100
    found = [value for each in tables for value in each["c0"].to_pylist()]
    assert sorted(found) == list(range(0, 200, 2))


async def test_call_without_inputs_gives_no_rows() -> None:
    _, (table,) = await worker({}).run(calling(Times(2)), ())
    assert table.num_rows == 0 and table.schema == SUMMED


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (Failing("build"), "ValueError: no model 'm' here"),
        (Failing("call"), "ZeroDivisionError: in the call"),
        (Failing("types"), "batch call Failing gave columns of the types"),
    ],
)
async def test_call_that_fails_says_what_failed(call: BatchCall, text: str) -> None:
    rows = rows_of("t", pa.table({"v": [1]}))
    with pytest.raises(ExecutionError, match=text):
        await worker({}).run(calling(call), [rows])


async def test_call_stops_when_its_answer_is_closed() -> None:
    @dataclass(frozen=True, slots=True)
    class Endless(BatchCall):
        def build(self) -> BatchFunction:
            def called(_batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                batch = pa.RecordBatch.from_pydict(
                    {"a": list(range(50_000)), "b": ["x" * 20] * 50_000}
                )
                try:
                    while True:
                        yield batch
                finally:
                    ended.set()

            return called

    ended = threading.Event()
    of = worker({})
    page = await of.open_task(replace(calling(Endless())), ())
    assert not page.is_last
    await of.close(page.cursor)

    async def has_ended() -> bool:
        return ended.is_set()

    await eventually(has_ended, "the call ends")
