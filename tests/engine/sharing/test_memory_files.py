"""Inputs of plans that are kept are read from files in memory."""

import gc
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_core.ids import TableName
from caraway_core.protocols.fleet import Share, Task
from caraway_core.tables import FileScan, FilesTable
from caraway_engine.sessions.sessions import Session
from caraway_engine.sharing import shares
from caraway_engine.stages import fragments
from tests.engine.sharing.shared_numbers import NAMES, ROWS, numbers
from tests.engine.stages.fragment_rows import tuples
from tests.kit.deadlines import until
from tests.kit.engine import session
from tests.kit.fragments import rows_of, task

JOIN = "SELECT t.a, n.name FROM t JOIN $names n ON t.g = n.g"
RUNS = 4


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Session:
    file: Path = tmp_path_factory.mktemp("files") / "t.parquet"
    pq.write_table(numbers(0, 9000), file, row_group_size=500)
    schema = pq.read_schema(file)
    return session(
        {"t": FilesTable(schema, (FileScan("parquet", (str(file),), schema, ".parquet"),))}
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


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Check that no file is left when the streams have ended."""
    yield
    gc.collect()
    assert not _memory_files()


def _memory_files() -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue  # That of the listing itself.
    return [each for each in found if "caraway-inputs" in each]


def split(of: Session, sql: str, rows: pa.Table = NAMES, count: int = 3) -> list[Task]:
    run = task(sql, {"t": of.snapshot.tables[TableName("t")].schema, "$names": rows.schema})
    listed = of.pieces(TableName("t"))
    assert listed is not None
    return [
        replace(run, shares=(Share(TableName("t"), p),)) for p in shares.divide_files(listed, count)
    ]


async def answer(of: Session, run: Task, *rows: pa.Table) -> list[Any]:
    return [
        row async for batch in of.run_task(run, [rows_of("names", *rows)]) for row in tuples(batch)
    ]


def is_used(of: Session, run: Task, *rows: pa.Table) -> bool:
    """Return whether the rows of a run would be read from a file; the run does not begin."""
    gc.collect()
    before = len(_memory_files())
    made = of._tasks.startable(run, [rows_of("names", *rows)])
    return made is not None and len(_memory_files()) > before


@pytest.mark.parametrize("sql", [each for each in ROWS if "$names" in each])
async def test_rows_are_those_of_the_first_run(over: Session, sql: str) -> None:
    for run in split(over, sql.format(t="t")):
        first = Counter(await answer(over, run, NAMES))
        for _ in range(RUNS):
            assert Counter(await answer(over, run, NAMES)) == first
        assert is_used(over, run, NAMES)


async def test_rows_of_other_values_are_read_with_the_same_plan(
    over: Session, planned: list[bytes]
) -> None:
    run = split(over, JOIN)[0]
    for _ in range(2):
        await answer(over, run, NAMES)
    planned.clear()
    other = pa.table({"g": [9, 2, 4, 0], "name": ["non", "TWO", "4444", "Zero"]})
    assert other.nbytes == NAMES.nbytes
    names = {2: "TWO", 4: "4444", 0: "Zero"}
    found = await answer(over, run, other)
    assert found and {name for _, name in found} == set(names.values())
    assert all(name == names[a % 5] for a, name in found)
    assert not planned


@pytest.mark.parametrize(
    "other",
    [
        NAMES.slice(0, 2),
        pa.concat_tables([NAMES, NAMES.slice(0, 1)]),
        NAMES.slice(0, 0),
        pa.table({"g": [0, 1, None, 9], "name": ["zero", "one", "two", "nine"]}),
    ],
)
async def test_rows_of_other_counts_are_planned_anew(
    over: Session, planned: list[bytes], other: pa.Table
) -> None:
    run = split(over, JOIN + " AND n.g IS NOT NULL")[0]
    for _ in range(3):
        await answer(over, run, NAMES)
    planned.clear()
    of = dict(zip(*other.to_pydict().values(), strict=True))
    for _ in range(RUNS):
        found = await answer(over, run, other)
        assert {name for _, name in found} == {of[g] for g in range(5) if g in of}
    assert planned


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n FROM t CROSS JOIN $names",
        "SELECT a FROM t WHERE a > (SELECT count(*) FROM $names)",
    ],
)
async def test_counts_are_those_of_the_rows_of_the_run(over: Session, sql: str) -> None:
    run = split(over, sql)[0]
    for rows in (NAMES, NAMES, NAMES, NAMES.slice(1), NAMES.slice(1), NAMES.slice(1), NAMES):
        fresh = session({str(name): spec for name, spec in over.snapshot.tables.items()})
        expected = Counter(await answer(fresh, run, rows))
        assert Counter(await answer(over, run, rows)) == expected


@pytest.mark.parametrize(
    "sql",
    [
        JOIN + " AND n.g > 5",
        "SELECT a FROM t WHERE a % 7 > (SELECT max(g) FROM $names)",
        "SELECT t.a FROM t LEFT JOIN $names n ON t.g = n.g WHERE n.g IS NULL",
        "SELECT a FROM t WHERE g NOT IN (SELECT g FROM $names)",
    ],
)
async def test_no_value_of_earlier_rows_is_part_of_a_plan(over: Session, sql: str) -> None:
    run = split(over, sql)[0]
    for values in ([1, 1, 1, 1], [1, 2, 3, 4], [1, 2, 3, 4], [6, 6, 6, 6], [0, 1, 2, 9]):
        rows = NAMES.set_column(0, "g", pa.array(values, pa.int64()))
        for _ in range(2):
            fresh = session({str(name): spec for name, spec in over.snapshot.tables.items()})
            expected = Counter(await answer(fresh, run, rows))
            assert Counter(await answer(over, run, rows)) == expected


TYPES = {
    "int8": pa.array([1, None, 3, 0], pa.int8()),
    "float": pa.array([1.5, float("nan"), None, -0.0]),
    "decimal": pa.array(
        [Decimal("1.50"), None, Decimal("-2.25"), Decimal(0)], pa.decimal128(20, 2)
    ),
    "text": pa.array(["", None, "ünï", "x" * 500]),
    "binary": pa.array([b"", None, b"\x00\xff", b"b"]),
    "bool": pa.array([True, None, False, True]),
    "date": pa.array([date(1970, 1, 1), None, date(2400, 2, 29), date(1, 1, 1)]),
    "time": pa.array([datetime(2020, 1, 1, tzinfo=UTC), None] * 2, pa.timestamp("us", "UTC")),
    "list": pa.array([[1, None], None, [], [4]]),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}, {"a": 2, "b": "y"}]),
    "null": pa.nulls(4, pa.string()),
    "dictionary": pa.array(["a", None, "a", "b"]).dictionary_encode(),
}


@pytest.mark.parametrize("kind", TYPES)
async def test_rows_of_every_type_are_read(over: Session, kind: str) -> None:
    rows = pa.table({"g": [0, 1, 2, 3], "name": TYPES[kind]})
    run = split(over, JOIN, rows)[0]
    first = [repr(each) for each in sorted(await answer(over, run, rows), key=repr)]
    for _ in range(RUNS):
        assert [repr(each) for each in sorted(await answer(over, run, rows), key=repr)] == first
    assert is_used(over, run, rows) == (kind != "dictionary")


async def test_several_tables_of_an_input_are_read_in_order(over: Session) -> None:
    run = split(over, "SELECT n.name FROM t JOIN $names n ON t.a = n.g")[0]
    halves = NAMES.slice(0, 2), NAMES.slice(2)
    for _ in range(RUNS):
        assert Counter(await answer(over, run, *halves)) == Counter(await answer(over, run, NAMES))


async def test_without_files_in_memory_plans_hold_the_rows(
    over: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = split(over, JOIN + " AND n.name <> 'x'")[0]
    first = Counter(await answer(over, run, NAMES))
    for _ in range(2):
        await answer(over, run, NAMES)
    assert is_used(over, run, NAMES)
    monkeypatch.delattr("os.memfd_create")
    assert not is_used(over, run, NAMES)
    assert Counter(await answer(over, run, NAMES)) == first


async def test_a_stream_that_is_closed_closes_its_files(over: Session) -> None:
    run = split(over, JOIN + " AND n.name <> 'y'")[0]
    for _ in range(2):
        await answer(over, run, NAMES)
    stream = over.run_task(run, [rows_of("names", NAMES)])
    assert _memory_files()
    await stream.aclose()
    del stream
    gc.collect()
    # A thread of the engine may hold the plan for a moment after its stream is closed.
    until(lambda: not _memory_files(), "the files are closed", 10)
