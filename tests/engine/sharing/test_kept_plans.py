"""Plans over shares of files are kept, and made again once a file has changed."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.protocols.fleet import Share, Task, TaskTable
from caraway_core.tables import FileScan, FilesTable
from caraway_engine.sessions.sessions import Session
from caraway_engine.sharing import shares, sharing
from caraway_engine.stages import fragments
from tests.engine.stages.fragment_rows import tuples
from tests.kit.engine import session
from tests.kit.fragments import rows_of, task

JOIN = "SELECT a, count(*) AS n FROM t JOIN u ON g = h WHERE a > 10 GROUP BY a"
SHARES = 3


def rows(start: int) -> pa.Table:
    return pa.table({"a": range(start, start + 9000), "g": [n % 7 for n in range(9000)]})


def more(*values: int) -> pa.Table:
    return pa.table({"h": pa.array(values, pa.int64())})


def write(file: Path, table: pa.Table) -> None:
    pq.write_table(table, file, row_group_size=500, compression="none", use_dictionary=False)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    found = {"t": tmp_path / "t.parquet", "u": tmp_path / "u.parquet"}
    write(found["t"], rows(0))
    write(found["u"], more(1, 2, 3))
    return found


@pytest.fixture
def over(files: dict[str, Path]) -> Session:
    return session({name: _table(file) for name, file in files.items()})


def _table(place: Path) -> FilesTable:
    file = next(place.rglob("*.parquet")) if place.is_dir() else place
    schema = pq.read_schema(file)
    path = f"{place}/" if place.is_dir() else str(place)
    return FilesTable(schema, (FileScan("parquet", (path,), schema, ".parquet", file_count=1),))


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


def tasks(of: Session, sql: str = JOIN) -> list[Task]:
    schemas = {str(name): spec.schema for name, spec in of.snapshot.tables.items()}
    run = task(sql, {**schemas, "$more": more().schema})
    listed = of.pieces(TableName("t"))
    assert listed is not None
    return [
        replace(run, shares=(Share(TableName("t"), p),))
        for p in shares.divide_files(listed, SHARES)
    ]


async def answer(of: Session, run: Task, inputs: Sequence[TaskTable] = ()) -> list[Any]:
    return [row async for batch in of.run_task(run, inputs) for row in tuples(batch)]


async def answers(of: Session, runs: Sequence[Task]) -> Counter[Any]:
    return Counter([row for run in runs for row in await answer(of, run)])


def expected(start: int, *matches: int) -> Counter[Any]:
    return Counter((start + n, 1) for n in range(9000) if start + n > 10 and n % 7 in matches)


async def test_a_fragment_that_runs_again_is_not_planned_again(
    over: Session, planned: list[bytes]
) -> None:
    runs = tasks(over)
    assert await answers(over, runs) == expected(0, 1, 2, 3)
    assert len(planned) == SHARES
    planned.clear()
    for _ in range(3):
        assert await answers(over, runs) == expected(0, 1, 2, 3)
    assert not planned


async def test_a_file_of_the_same_size_with_other_rows_is_read_anew(
    over: Session, files: dict[str, Path], planned: list[bytes]
) -> None:
    runs = tasks(over)
    await answers(over, runs)
    for name, table, found in (
        ("t", rows(50_000), expected(50_000, 1, 2, 3)),
        ("u", more(4, 5, 6), expected(50_000, 4, 5, 6)),
    ):
        size = files[name].stat().st_size
        write(files[name], table)
        assert files[name].stat().st_size == size
        planned.clear()
        assert await answers(over, tasks(over)) == found
        assert planned


async def test_a_file_that_comes_into_a_folder_is_read(
    files: dict[str, Path], tmp_path: Path, planned: list[bytes]
) -> None:
    folder = tmp_path / "folder" / "inner"
    folder.mkdir(parents=True)
    write(folder / "1.parquet", more(1, 2))
    of = session({"t": _table(files["t"]), "u": _table(folder.parent)})
    runs = tasks(of)
    for _ in range(2):
        assert await answers(of, runs) == expected(0, 1, 2)
    planned.clear()
    assert await answers(of, runs) == expected(0, 1, 2)
    assert not planned
    write(folder / "2.parquet", more(5))
    assert await answers(of, runs) == expected(0, 1, 2, 5)
    (folder / "1.parquet").unlink()
    assert await answers(of, runs) == expected(0, 5)


def test_files_are_listed_again_only_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[object] = []
    of_plan = sharing.listed

    def noted(plan: Any, spec: Any) -> Any:
        listed.append(plan)
        return of_plan(plan, spec)

    monkeypatch.setattr(sharing, "listed", noted)
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / "1.parquet", more(1, 2))
    of = session({"u": _table(folder)})
    first = of.pieces(TableName("u"))
    assert first is not None and len(first) == 1
    assert of.pieces(TableName("u")) == first and len(listed) == 1
    write(folder / "2.parquet", more(5))
    second = of.pieces(TableName("u"))
    assert second is not None and len(second) == 2 and len(listed) == 2
    write(folder / "2.parquet", more(*range(100)))
    third = of.pieces(TableName("u"))
    assert third is not None and third != second
    (folder / "1.parquet").unlink()
    fourth = of.pieces(TableName("u"))
    assert fourth is not None and len(fourth) == 1


async def test_a_share_of_a_file_that_changed_is_refused_although_its_plan_is_kept(
    over: Session, files: dict[str, Path]
) -> None:
    runs = tasks(over)
    await answers(over, runs)
    write(files["t"], rows(0).slice(0, 100))
    with pytest.raises(ExecutionError, match="when the query was planned"):
        await answer(over, runs[0])
    os.unlink(files["t"])
    with pytest.raises(ExecutionError, match="is missing"):
        await answer(over, runs[0])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t.a FROM t JOIN $more ON g = h",
        "SELECT a FROM t WHERE random() < 0",
    ],
)
async def test_what_differs_from_run_to_run_is_planned_each_time(
    over: Session, planned: list[bytes], sql: str
) -> None:
    (run, *_) = tasks(over, sql)
    few, many = ([rows_of("more", more(*found))] for found in ((1,), (1, 2, 3)))
    if "random" in sql:
        few, many = [], []
    first = await answer(over, run, few)
    planned.clear()
    assert len(await answer(over, run, many)) == len(first) * (3 if many else 1)
    assert planned
