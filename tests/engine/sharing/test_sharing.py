import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caraway_core.errors import ExecutionError, NotDistributableError
from caraway_core.ids import TableName
from caraway_core.protocols.fleet import Share, Task, TaskTable
from caraway_core.tables import FileFormat, FileScan, FilesTable
from caraway_engine.sessions.sessions import Session
from caraway_engine.sharing import shares
from tests.engine.sharing.shared_numbers import NAMES, ROWS, SCHEMA, numbers
from tests.engine.stages.fragment_rows import tuples
from tests.kit.engine import memory, session
from tests.kit.fragments import rows_of, task

COUNTS = (1, *(pytest.param(each, marks=pytest.mark.full) for each in (2, 3)), 7)


def files(folder: Path, format_: FileFormat = "parquet", **options: Any) -> FilesTable:
    schema = options.pop("schema", SCHEMA)
    found = [path for path in folder.rglob("*") if path.is_file()]
    whole = pa.schema([*schema, *options.get("partition_columns", ())])
    scan = FileScan(format_, (f"{folder}/",), schema, f".{format_}", **options)
    return FilesTable(whole, (replace(scan, file_count=len(found)),))


def parquet(folder: Path) -> FilesTable:
    """Unequal files: one large, one of one row group, one row, no rows, and odd names."""
    folder.mkdir()
    pq.write_table(numbers(0, 20_000), folder / "large.parquet", row_group_size=700)
    pq.write_table(numbers(20_000, 3000), folder / "one group.parquet")
    pq.write_table(numbers(23_000, 1), folder / "50%25=row.parquet")
    pq.write_table(numbers(0, 0), folder / "none.parquet")
    pq.write_table(numbers(23_001, 500), folder / "ünï.parquet", row_group_size=10)
    return files(folder)


def hive(folder: Path) -> FilesTable:
    for key in ("x", "y", "z"):
        (folder / f"k={key}").mkdir(parents=True)
        for number in range(2):
            start = ord(key) * 1000 + number * 100
            pq.write_table(numbers(start, 100), folder / f"k={key}" / f"{number}.parquet")
    return files(folder, partition_columns=(pa.field("k", pa.string()),))


def in_order(folder: Path) -> FilesTable:
    """Files that say how they are sorted, so that the engine does not sort them again."""
    folder.mkdir()
    for number in range(4):
        pq.write_table(
            numbers(number * 1000, 1000), folder / f"{number}.parquet", row_group_size=50,
            sorting_columns=[pq.SortingColumn(0)],
        )  # fmt: skip
    return files(folder)


def text(folder: Path) -> FilesTable:
    folder.mkdir()
    for number in range(5):
        lines = [f"{v},{v % 5},text {v}\n" for v in range(number * 100, number * 130 + 5)]
        (folder / f"{number}.csv").write_text("a,g,s\n" + "".join(lines))
    return files(folder, "csv")


def lines(folder: Path) -> FilesTable:
    folder.mkdir()
    for number in range(3):
        rows = [f'{{"a":{v},"g":{v % 5},"s":"{v}"}}\n' for v in range(number * 10, number * 15)]
        (folder / f"{number}.json").write_text("".join(rows) or '{"a":-1,"g":0,"s":""}\n')
    return files(folder, "json")


MAKERS: dict[str, Callable[[Path], FilesTable]] = {
    "parquet": parquet, "hive": hive, "in_order": in_order, "text": text, "lines": lines,
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("files")
    tables = {name: make(folder / name) for name, make in MAKERS.items()}
    return session({**tables, "view": "SELECT a FROM parquet", "mem": memory(a=[1])})


def split(of: Session, run: Task, table: str, count: int) -> list[Task]:
    name = TableName(table)
    listed = of.pieces(name)
    assert listed is not None
    return [
        replace(run, shares=(Share(name, pieces),)) for pieces in shares.divide_files(listed, count)
    ]


def schemas(of: Session) -> dict[str, pa.Schema]:
    specs = of.snapshot.tables.items()
    known = {str(name): spec.schema for name, spec in specs if isinstance(spec, FilesTable)}
    return {**known, "$names": NAMES.schema}


async def answer(of: Session, run: Task) -> list[tuple[Any, ...]]:
    inputs: Sequence[TaskTable] = [rows_of("names", NAMES)]
    batches = [batch async for batch in of.run_task(run, inputs)]
    return list(chain.from_iterable(map(tuples, batches)))


async def answers(of: Session, sql: str, table: str, count: int) -> list[list[tuple[Any, ...]]]:
    run = task(sql, schemas(of))
    return [await answer(of, each) for each in split(of, run, table, count)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("table", MAKERS)
async def test_rows_of_all_shares_are_the_rows_of_the_table(
    made: Session, table: str, count: int
) -> None:
    for sql in (each.format(t=table) for each in ROWS):
        whole = await answer(made, task(sql, schemas(made)))
        parts = await answers(made, sql, table, count)
        assert Counter(chain.from_iterable(parts)) == Counter(whole), sql


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("table", MAKERS)
@pytest.mark.parametrize("where", ["", "WHERE a >= 130", "WHERE a < -5"])
async def test_each_share_counts_its_own_rows(
    made: Session, table: str, count: int, where: str
) -> None:
    sql = f"SELECT count(*) AS n, min(a) AS low, max(a) AS high, count(s) AS c FROM {table} {where}"
    (whole,) = await answer(made, task(sql, schemas(made)))
    parts = list(chain.from_iterable(await answers(made, sql, table, count)))
    assert len(parts) == count
    assert sum(part[0] for part in parts) == whole[0] == sum(part[3] for part in parts)
    assert min((p[1] for p in parts if p[1] is not None), default=None) == whole[1]
    assert max((p[2] for p in parts if p[2] is not None), default=None) == whole[2]
    for simple in (f"SELECT count(*) AS n FROM {table} {where}",):
        parts = list(chain.from_iterable(await answers(made, simple, table, count)))
        assert sum(part[0] for part in parts) == whole[0]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("table", MAKERS)
async def test_limit_takes_rows_of_its_own_share(made: Session, table: str, count: int) -> None:
    every = set(await answer(made, task(f"SELECT a FROM {table}", schemas(made))))
    for limit in (1, 3, 150):
        parts = await answers(made, f"SELECT a FROM {table} LIMIT {limit}", table, count)
        assert all(len(part) <= limit for part in parts)
        taken = list(chain.from_iterable(parts))
        assert len(set(taken)) == len(taken)
        assert set(taken) <= every
        sizes = [len(p) for p in await answers(made, f"SELECT a FROM {table}", table, count)]
        assert [len(part) for part in parts] == [min(limit, size) for size in sizes]


@pytest.mark.parametrize("count", COUNTS)
async def test_partial_groups_add_up(made: Session, count: int) -> None:
    sql = "SELECT g, count(*) AS n, sum(a) AS s FROM parquet GROUP BY g"
    found: dict[Any, list[int]] = {}
    for g, n, s in chain.from_iterable(await answers(made, sql, "parquet", count)):
        total = found.setdefault(g, [0, 0])
        total[0] += n
        total[1] += s
    assert sorted((g, *total) for g, total in found.items()) == sorted(
        await answer(made, task(sql, schemas(made)))
    )


@pytest.mark.parametrize("count", COUNTS)
async def test_order_that_files_say_they_have_holds_in_each_share(
    made: Session, count: int
) -> None:
    for part in await answers(made, "SELECT a FROM in_order ORDER BY a", "in_order", count):
        assert part == sorted(part)
        assert part


@pytest.mark.parametrize("count", COUNTS)
async def test_partition_values_prune_and_are_kept(made: Session, count: int) -> None:
    for where in ("k = 'y'", "k > 'x'", "k = 'nowhere'", "k <> 'y' AND a > 121000"):
        for sql in (
            f"SELECT a, k FROM hive WHERE {where}",
            f"SELECT k, count(*) AS n FROM hive WHERE {where} GROUP BY k, a",
        ):
            whole = await answer(made, task(sql, schemas(made)))
            parts = await answers(made, sql, "hive", count)
            assert Counter(chain.from_iterable(parts)) == Counter(whole)
        sql = f"SELECT count(*) AS n FROM hive WHERE {where}"
        ((whole_count,),) = await answer(made, task(sql, schemas(made)))
        parts = await answers(made, sql, "hive", count)
        assert sum(n for (n,) in chain.from_iterable(parts)) == whole_count


async def test_table_without_a_share_is_read_whole_beside_one_with(made: Session) -> None:
    sql = "SELECT t.a, h.k FROM parquet t JOIN hive h ON t.g = h.g AND h.a % 50 = 0"
    whole = await answer(made, task(sql, schemas(made)))
    for shared in ("parquet", "hive"):
        parts = await answers(made, sql, shared, 3)
        assert Counter(chain.from_iterable(parts)) == Counter(whole)


FILTERS = [
    "",
    "WHERE g = 3",
    "WHERE a > 19990",
    "WHERE a < 0",
    "WHERE s = 'text 20007'",
    "WHERE a % 2 = 0 AND g < 2",
]


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Statements whose rows are the union of the rows of shares."""
    where = draw(st.sampled_from(FILTERS))
    base = f"SELECT a, g, s FROM parquet {where}"
    for _ in range(draw(st.integers(0, 2))):
        kind = draw(st.sampled_from(["filter", "join", "semi", "anti", "union", "project"]))
        base = {
            "filter": f"SELECT * FROM ({base}) q WHERE a % 3 <> 1",
            "join": f"SELECT q.a, q.g, n.name AS s FROM ({base}) q JOIN $names n ON q.g = n.g",
            "semi": f"SELECT * FROM ({base}) q WHERE EXISTS "
            "(SELECT 1 FROM $names n WHERE n.g = q.g)",
            "anti": f"SELECT * FROM ({base}) q WHERE NOT EXISTS "
            "(SELECT 1 FROM $names n WHERE n.g = q.g)",
            "union": f"SELECT * FROM ({base}) q UNION ALL SELECT a, g, s FROM parquet WHERE g = 4",
            "project": f"SELECT g AS a, a AS g, concat(s, 'x') AS s FROM ({base}) q",
        }[kind]
    return base


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(sql=queries(), count=st.integers(1, 6))
def test_any_plan_of_rows_is_the_union_of_its_shares(made: Session, sql: str, count: int) -> None:
    async def compare() -> None:
        whole = await answer(made, task(sql, schemas(made)))
        parts = await answers(made, sql, "parquet", count)
        assert Counter(chain.from_iterable(parts)) == Counter(whole)

    asyncio.run(compare())


def test_only_plain_tables_of_files_have_pieces(made: Session) -> None:
    assert made.pieces(TableName("view")) is None
    assert made.pieces(TableName("mem")) is None
    assert made.pieces(TableName("nowhere")) is None
    listed = made.pieces(TableName("parquet"))
    assert listed is not None
    assert [file.is_splittable for file in listed] == [True] * 5
    assert all(not file.is_splittable for file in made.pieces(TableName("text")) or ())


async def test_view_of_a_shared_table_is_a_view_of_the_share(made: Session) -> None:
    known = {**schemas(made), "view": pa.schema([("a", pa.int64())])}
    sql = "SELECT a FROM view UNION ALL SELECT a FROM parquet WHERE g = 1"
    whole = await answer(made, task(sql, known))
    parts = [await answer(made, run) for run in split(made, task(sql, known), "parquet", 3)]
    assert Counter(chain.from_iterable(parts)) == Counter(whole)


def test_share_of_a_table_that_is_not_read_is_refused(made: Session) -> None:
    (run,) = split(made, task("SELECT a FROM hive", schemas(made)), "parquet", 1)
    with pytest.raises(ExecutionError, match="bug in the planner"):
        made.run_task(run, ())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    parquet(tmp_path / "t")
    return tmp_path / "t"


async def test_file_that_changed_or_went_after_the_cut_fails_the_task(folder: Path) -> None:
    of = session({"t": files(folder)})
    for sql in ("SELECT a FROM t", "SELECT count(*) AS n FROM t"):
        parquet_file = folder / "large.parquet"
        before = parquet_file.read_bytes()
        (run,) = split(of, task(sql, schemas(of)), "t", 1)
        pq.write_table(numbers(0, 5), parquet_file)
        with pytest.raises(ExecutionError, match=r"and had .* when the query was planned"):
            await answer(of, run)
        parquet_file.unlink()
        with pytest.raises(
            ExecutionError, match=r"large\.parquet' is missing; run the query again"
        ):
            await answer(of, run)
        parquet_file.write_bytes(before)
        assert await answer(of, run)


async def test_file_that_came_after_the_cut_is_not_read(folder: Path) -> None:
    of = session({"t": files(folder)})
    runs = split(of, task("SELECT a FROM t", schemas(of)), "t", 2)
    before = [len(await answer(of, run)) for run in runs]
    pq.write_table(numbers(0, 5), folder / "later.parquet")
    assert [len(await answer(of, run)) for run in runs] == before


def test_pieces_of_files_of_two_tables_cannot_be_told_apart(folder: Path) -> None:
    of = session({"t": files(folder), "u": files(folder)})
    run = split(of, task("SELECT t.a FROM t JOIN u ON t.a = u.a", schemas(of)), "t", 7)[0]
    with pytest.raises(NotDistributableError, match="belong to several datasets"):
        of.run_task(run, ())
