"""Rows of a union that has a constant for each part come in their order."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext

from caraway_engine.sessions.sessions import Session
from tests.engine.stages.fragment_rows import tuples
from tests.kit.engine import rows, session
from tests.kit.fragments import task
from tests.kit.tables import parquet

ROWS = 20_000
RUNS = 10
_UNION = "(SELECT id, 0 AS k FROM a UNION ALL SELECT id, 1 AS k FROM b)"
_LAST = [(ROWS - each, 0) for each in range(3)]
_FIRST = [(ROWS + 1 + each, 1) for each in range(3)]
STATEMENTS: dict[str, list[tuple[Any, ...]]] = {
    "SELECT id, 0 AS k FROM a UNION ALL SELECT id, 1 FROM b ORDER BY k, id DESC LIMIT 3": _LAST,
    "SELECT id, k FROM a WHERE k = 0 UNION ALL SELECT id, k FROM b WHERE k = 1 "
    "ORDER BY k, id DESC LIMIT 3": _LAST,
    f"SELECT * FROM {_UNION} ORDER BY k DESC, id LIMIT 3": _FIRST,
    f"SELECT id % 10 AS r, 1 - k AS k FROM {_UNION} ORDER BY r, k LIMIT 3": [(0, 0)] * 3,
    f"SELECT * FROM {_UNION} WHERE now() > TIMESTAMP '2020-01-01' ORDER BY k DESC, id LIMIT 3":
        _FIRST,
    f"SELECT (SELECT id FROM {_UNION} ORDER BY k DESC, id LIMIT 1) AS id": [(ROWS + 1,)],
    "SELECT * FROM parts ORDER BY k DESC, id LIMIT 3": _FIRST,
}  # fmt: skip


@pytest.fixture
def made(tmp_path: Path) -> Session:
    a, b = (
        parquet(tmp_path / name, pa.table({"id": range(first, first + ROWS), "k": [k] * ROWS}), 2)
        for name, first, k in (("a", 1, 0), ("b", ROWS + 1, 1))
    )
    return session({"a": a, "b": b, "parts": "SELECT id, k FROM a UNION ALL SELECT id, k FROM b"})


@pytest.mark.parametrize("sql", STATEMENTS)
async def test_a_limit_leaves_the_first_rows_of_a_union(made: Session, sql: str) -> None:
    answers = [[tuple(row.values()) for row in await rows(made, sql)] for _ in range(RUNS)]
    assert answers == [STATEMENTS[sql]] * RUNS


@pytest.mark.parametrize(
    ("sql", "is_apart"),
    [
        ("SELECT id FROM a ORDER BY k, id DESC LIMIT 3", True),
        ("SELECT id, rank() OVER (ORDER BY k) FROM a", True),
        ("SELECT id FROM a", False),
        (f"SELECT id FROM {_UNION} ORDER BY k, id DESC LIMIT 3", False),
        ("SELECT id FROM parts ORDER BY k, id DESC LIMIT 3", False),
    ],
)
async def test_partitions_sort_apart_where_there_is_no_union(
    made: Session, sql: str, is_apart: bool
) -> None:
    await rows(made, sql)
    (running,) = made._statements.reruns._running.values()
    assert running.sorts_apart is is_apart


def test_the_engine_still_has_the_fault() -> None:
    """Once it fails, `repartition_sorts` may be left on; see `PlanRun`."""
    context = SessionContext(SessionConfig().with_target_partitions(2))
    for name, first in (("a", 1), ("b", ROWS + 1)):
        numbers = pa.table({"id": range(first, first + ROWS)})
        context.register_record_batches(name, [numbers.to_batches(max_chunksize=8192)])
    sql = f"SELECT * FROM {_UNION} ORDER BY k DESC, id LIMIT 3"
    answers = [context.sql(sql).to_pylist() for _ in range(RUNS)]
    assert any([tuple(row.values()) for row in each] != _FIRST for each in answers)


@pytest.mark.parametrize(
    ("sql", "is_apart"),
    [
        ("SELECT id FROM a ORDER BY k, id DESC LIMIT 3", True),
        ("SELECT id, rank() OVER (ORDER BY k) AS r FROM a", True),
        ("SELECT id FROM a", False),
        (f"SELECT id FROM {_UNION} ORDER BY k, id DESC LIMIT 3", False),
        ("SELECT id FROM parts ORDER BY k, id DESC LIMIT 3", False),
    ],
)
def test_partitions_of_a_task_sort_apart_where_there_is_no_union(
    made: Session, sql: str, is_apart: bool
) -> None:
    columns = pa.schema([("id", pa.int64()), ("k", pa.int64())])
    started = made._tasks.startable(task(sql, dict.fromkeys(("a", "b", "parts"), columns)), ())
    assert started.executed is not None
    plan = started.executed().display_indent()
    assert ("SortPreservingMergeExec" in plan) is is_apart


async def test_a_task_without_a_union_sorts_in_several_partitions(made: Session) -> None:
    columns = {"a": pa.schema([("id", pa.int64()), ("k", pa.int64())])}
    run = task("SELECT id FROM a ORDER BY k, id DESC LIMIT 3", columns)
    found = [
        row for batch in [each async for each in made.run_task(run, ())] for row in tuples(batch)
    ]
    assert found == [(ROWS,), (ROWS - 1,), (ROWS - 2,)]
