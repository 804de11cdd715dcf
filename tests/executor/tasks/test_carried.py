from collections.abc import Sequence

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError
from caraway_core.ids import ExecutorId
from caraway_core.protocols import wire
from caraway_core.protocols.fleet import Task, TaskReport
from caraway_core.protocols.wire import InputShape
from caraway_executor.answers.kept_tables import KeptTables
from caraway_executor.tasks.carried import CarriedTasks
from tests.kit.fragments import task

SCHEMA = pa.schema([("v", pa.int64())])
WORK = task("SELECT 1 AS v", {})
MADE = (pa.table({"v": [1, 2]}), pa.table({"v": pa.array([], pa.int64())}))
INPUT = pa.table({"v": [7, 8]})
SHAPES = [InputShape("$x", SCHEMA, (ExecutorId("e2"),))]


class Running:
    """Stands for the worker."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.read: Sequence[pa.Table] = ()

    async def run(
        self, call: str, _task: Task, _inputs: Sequence[InputShape], tables: Sequence[pa.Table]
    ) -> tuple[TaskReport, tuple[pa.Table, ...]]:
        self.calls.append(call)
        self.read = tables
        sizes = tuple((each.num_rows, each.nbytes) for each in MADE)
        return TaskReport(sizes, 1.5), MADE


async def test_few_rows_are_in_the_answer() -> None:
    running, kept = Running(), KeptTables()
    carried = CarriedTasks(running.run, kept)
    packed = [wire.pack_table(INPUT)]
    answer = await carried.run_task("q/1", WORK, SHAPES, packed, 16)
    assert answer.report.sizes == ((2, 16), (0, 0))
    assert answer.tables is not None
    assert tuple(map(wire.unpack_table, answer.tables)) == MADE
    assert running.calls == ["q/1"]
    assert list(running.read) == [INPUT]
    assert len(kept) == 0


async def test_more_rows_wait_to_be_taken() -> None:
    kept = KeptTables()
    answer = await CarriedTasks(Running().run, kept).run_task("q/1", WORK, [], [], 15)
    assert answer.tables is None
    assert answer.report.elapsed_ms == 1.5
    assert await kept.take("q/1") is MADE


async def test_a_task_that_fails_keeps_nothing() -> None:
    async def fails(*_arguments: object) -> tuple[TaskReport, tuple[pa.Table, ...]]:
        raise InvalidQueryError("no column")

    kept = KeptTables()
    with pytest.raises(InvalidQueryError, match="no column"):
        await CarriedTasks(fails, kept).run_task("q/1", WORK, [], [], 15)
    assert len(kept) == 0
