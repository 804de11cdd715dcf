"""Plans of tasks: the pieces that tasks share, and tasks that are refused."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_core.errors import ExecutionError, QueryError
from caraway_core.ids import TableName
from caraway_core.pieces import FileRange
from caraway_core.protocols.fleet import Share
from caraway_core.tables import FileScan, FilesTable
from caraway_engine.sessions.registered import Registered
from caraway_engine.sessions.sessions import Session
from caraway_engine.sessions.task_plans import TaskPlanner
from tests.kit.engine import memory, session
from tests.kit.fragments import rows_of, task

ROWS = pa.table({"k": range(100), "g": [n % 3 for n in range(100)]})
SCHEMAS = dict.fromkeys(("t", "m", "v", "$more"), ROWS.schema)
T = TableName("t")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(3):
        pq.write_table(ROWS.slice(number * 30, 30), tmp_path / f"{number}.parquet")
    return tmp_path


@pytest.fixture
def over(folder: Path) -> Session:
    scan = FileScan("parquet", (f"{folder}/",), ROWS.schema, ".parquet", file_count=3)
    tables = {"t": FilesTable(ROWS.schema, (scan,)), "m": memory(k=[1], g=[1])}
    return session({**tables, "v": "SELECT k, g FROM t"})


def planner(of: Session) -> TaskPlanner:
    registered: Registered = of._registered
    return TaskPlanner(registered)


def whole(file: Path) -> FileRange:
    size_bytes = file.stat().st_size
    return FileRange(f"file://{file}", 0, size_bytes, size_bytes)


def test_pieces_are_the_files_of_a_table(over: Session, folder: Path) -> None:
    pieces = planner(over).pieces(T)

    assert pieces is not None
    assert [each.name.removeprefix("file://").lstrip("/") for each in pieces] == [
        str(folder / f"{number}.parquet").lstrip("/") for number in range(3)
    ]
    assert all(each.is_splittable and each.size_bytes > 0 for each in pieces)


@pytest.mark.parametrize("name", ["m", "v", "nothing"])
def test_what_is_no_table_of_files_has_no_pieces(over: Session, name: str) -> None:
    assert not planner(over).pieces(TableName(name))


def test_a_folder_that_is_gone_has_no_pieces(over: Session, folder: Path) -> None:
    tasks = planner(over)
    assert tasks.pieces(T)
    for file in folder.iterdir():
        file.unlink()
    assert tasks.pieces(T) == ()


def test_a_task_reads_its_share(over: Session, folder: Path) -> None:
    share = Share(T, (whole(folder / "1.parquet"),))
    run = task("SELECT sum(k) AS s FROM t", SCHEMAS, shares=[share])

    startable = planner(over).startable(run, ())

    assert startable.schema.types == [pa.int64()]
    assert not startable.plan.is_product
    assert startable.start_again is not None


def test_a_share_that_the_fragment_does_not_read_is_an_error(over: Session, folder: Path) -> None:
    share = Share(T, (whole(folder / "1.parquet"),))
    run = task("SELECT k FROM m", SCHEMAS, shares=[share])
    with pytest.raises(QueryError, match="share of dataset 't', which its fragment does not read"):
        planner(over).startable(run, ())


def test_columns_of_other_types_than_the_plan_says_are_an_error(over: Session) -> None:
    run = replace(task("SELECT k FROM m", SCHEMAS), schema=pa.schema([("c0", pa.string())]))
    with pytest.raises(ExecutionError, match="a bug in the planner"):
        planner(over).startable(run, ())


def test_a_missing_input_is_an_error_without_its_token(over: Session) -> None:
    run = task("SELECT k FROM $more", SCHEMAS)
    with pytest.raises(QueryError) as caught:
        planner(over).startable(run, ())
    assert "more" in caught.value.message


def test_a_product_runs_once_and_alone(over: Session) -> None:
    run = task("SELECT m.k FROM m, $more n", SCHEMAS)
    startable = planner(over).startable(run, [rows_of("more", ROWS)])
    assert startable.plan.is_product
    assert startable.start_again is None
