"""Tasks that read only rows of other tasks, and run again with other rows."""

import gc
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.ids import TableName
from caraway_core.protocols.fleet import Task
from caraway_core.statements import GivenRows
from caraway_engine.sessions import repeated_tasks
from caraway_engine.sessions.sessions import Session
from caraway_engine.stages import fragments
from tests.engine.stages.fragment_rows import tuples
from tests.kit.engine import session
from tests.kit.fragments import rows_of, task

SCHEMA = pa.schema([("g", pa.int64()), ("s", pa.string()), ("v", pa.float64())])
OTHER = pa.schema([field.with_name(f"b_{field.name}") for field in SCHEMA])
SCHEMAS = {"$a": SCHEMA, "$b": OTHER}
KEPT = [
    "SELECT g, sum(v) AS s, count(*) AS n FROM $a GROUP BY g",
    "SELECT min(v) AS x, max(v) AS y, count(*) AS n, count(v) AS m, min(s) AS z FROM $a",
    "SELECT s, v FROM $a ORDER BY v DESC LIMIT 3",
    "SELECT DISTINCT s FROM $a WHERE v > 10",
    "SELECT s, b_v FROM $a JOIN $b ON g = b_g WHERE b_v > 20",
    "SELECT s FROM $a WHERE g IN (SELECT b_g FROM $b WHERE b_v > 40)",
    "SELECT s FROM $a LEFT JOIN $b ON v = b_v WHERE b_v IS NULL",
    "SELECT s, row_number() OVER (PARTITION BY g ORDER BY v) AS n FROM $a",
    "SELECT s FROM $a UNION ALL SELECT b_s FROM $b",
    "SELECT coalesce(v, -1) AS v FROM $a WHERE v IS NULL OR v < 5",
]


def rows(start: int, count: int = 50) -> pa.Table:
    """Make rows that have the same statistics as those of another start: sizes and NULLs."""
    numbers = range(start, start + count)
    return pa.table(
        {
            "g": [n % 5 for n in numbers],
            "s": [f"{n:06}" for n in numbers],
            "v": [None if n % 50 == 7 else n % 53 * 1.5 for n in numbers],
        },
        SCHEMA,
    )


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The fragments that were planned."""
    found: list[bytes] = []
    plan = fragments.plan

    def noted(context: Any, fragment: bytes, *others: Any) -> Any:
        found.append(fragment)
        return plan(context, fragment, *others)

    monkeypatch.setattr(fragments, "plan", noted)
    return found


async def answer(of: Session, run: Task, *inputs: pa.Table) -> Counter[Any]:
    given = [rows_of(name, table) for name, table in zip("ab", inputs, strict=False)]
    return Counter([row async for batch in of.run_task(run, given) for row in tuples(batch)])


def used(sql: str, first: pa.Table, second: pa.Table) -> Sequence[pa.Table]:
    return [first, second.rename_columns(OTHER.names)] if "$b" in sql else [first]


@pytest.mark.parametrize("sql", KEPT)
async def test_other_rows_are_read_by_a_plan_that_is_kept(sql: str, planned: list[bytes]) -> None:
    run, of = task(sql, SCHEMAS), session({})
    starts = [(0, 50), (50, 0), (100, 150), (1000, 2000), (0, 50)]
    for number, (first, second) in enumerate(starts):
        if number == 2:
            planned.clear()
        tables = used(sql, rows(first), rows(second))

        found = await answer(of, run, *tables)

        assert found == await answer(session({}), run, *tables)
        assert found
    assert len(planned) == len(starts) - 2, "the new sessions planned, and the first did not"


async def test_inputs_with_the_same_columns_are_told_apart() -> None:
    run, of = (
        task("SELECT s FROM $a EXCEPT SELECT s FROM $b", {"$a": SCHEMA, "$b": SCHEMA}),
        session({}),
    )
    for start in (0, 10, 20, 30):
        found = await answer(of, run, rows(start), rows(start + 40))
        assert found == Counter((f"{n:06}",) for n in range(start, start + 40))


async def test_a_fragment_that_ran_once_has_no_kept_plan(planned: list[bytes]) -> None:
    run, of = task(KEPT[0], SCHEMAS), session({})
    for count, plans in ((50, 1), (49, 2), (50, 3), (50, 3), (49, 4), (49, 4)):
        await answer(of, run, rows(0, count))
        assert len(planned) == plans


@pytest.mark.parametrize("nulls", [0, 1, 50])
async def test_numbers_of_rows_and_nulls_are_counted_again(nulls: int) -> None:
    run, of = task("SELECT count(*) AS n, count(v) AS m, sum(v) AS s FROM $a", SCHEMAS), session({})
    for count in (50, 50, 50, 49, 49, 49):
        values = [None] * min(nulls, count) + [1.0] * (count - min(nulls, count))
        table = rows(0, count).set_column(2, "v", pa.array(values, pa.float64()))
        kept = count - min(nulls, count)
        found = await answer(of, run, table)
        assert found == Counter([(count, kept, float(kept) if kept else None)])


async def test_rows_that_are_large_are_not_copied(
    planned: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated_tasks, "_MOST_INPUT_BYTES", 1000)
    run, of = task(KEPT[0], SCHEMAS), session({})
    for _ in range(4):
        await answer(of, run, rows(0))
    assert len(planned) == 4


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT s FROM $a WHERE random() < 2",
        "SELECT 1 AS one",
        "SELECT s FROM $a, $b WHERE v < b_v",
    ],
)
async def test_what_differs_or_may_not_spill_is_planned_each_time(
    sql: str, planned: list[bytes]
) -> None:
    run, of = task(sql, SCHEMAS), session({})
    for _ in range(3):
        planned.clear()
        tables = used(sql, rows(0), rows(50)) if "$a" in sql else []
        assert await answer(of, run, *tables)
        assert planned or sql == "SELECT 1 AS one"


async def test_rows_of_searches_are_those_of_the_task(planned: list[bytes]) -> None:
    run, of = task(KEPT[0], SCHEMAS), session({})
    found = GivenRows(TableName("found"), pa.table({"k": [1]}).combine_chunks())
    for _ in range(4):
        await answer(of, replace(run, found=(found,)), rows(0))
    assert len(planned) == 4


async def test_no_file_is_left_by_streams_that_were_not_read() -> None:
    run, of = task(KEPT[0], SCHEMAS), session({})
    for _ in range(3):
        await answer(of, run, rows(0))
    streams = [of.run_task(run, [rows_of("a", rows(0))]) for _ in range(3)]
    for each in streams:
        await each.aclose()
    del streams
    gc.collect()
    assert await answer(of, run, rows(0)) == await answer(session({}), run, rows(0))
