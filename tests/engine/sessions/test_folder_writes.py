"""Leftovers of dead statements are removed from folders; those of living ones stay."""

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from caraway_core.errors import ExecutionError, InvalidQueryError
from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import TableSpec
from caraway_engine.sessions.folder_writes import WrittenFolder
from caraway_plugins.sources.files import LocalFiles
from tests.kit.engine import rows, session

BEGUN = "vFo8onDZ2SVqEdyE.parquet#1"
DAY_S = 24 * 3600


def table(tmp_path: Path, name: str = "a.parquet") -> TableSpec:
    file = tmp_path / "t" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table({"id": pa.array([1], pa.int64()), "v": ["a"]}), file)
    request = SourceRequest(
        TableName("t"), "file", f"{tmp_path}/t/", {}, (), "read_write", tmp_path, tmp_path
    )
    return LocalFiles().resolve(request)


def left(tmp_path: Path, name: str = BEGUN, age_s: float = 2 * DAY_S) -> Path:
    """Return a file that a statement began so long ago."""
    path = tmp_path / "t" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"PAR1")
    moment = time.time() - age_s
    os.utime(path, (moment, moment))
    return path


async def insert(spec: TableSpec, sql: str = "INSERT INTO t VALUES (2, 'b')") -> None:
    await rows(session({"t": spec}), sql, writable=frozenset({TableName("t")}))


async def test_a_leftover_is_removed_by_the_next_statement(tmp_path: Path) -> None:
    spec = table(tmp_path)
    dead = [left(tmp_path), left(tmp_path, "vFo8onDZ2SVqEdyE_12.parquet#3")]
    await insert(spec)
    assert not any(each.exists() for each in dead)
    assert len(list((tmp_path / "t").iterdir())) == 2


async def test_leftovers_in_folders_of_partitions_are_removed(tmp_path: Path) -> None:
    spec = table(tmp_path, "p=7/a.parquet")
    dead = left(tmp_path, f"p=9/{BEGUN}")
    await insert(spec, "INSERT INTO t VALUES (2, 'b', 8)")
    assert not dead.exists()


@pytest.mark.parametrize(
    "name",
    ["notes#1", "x.parquet#1", "vFo8onDZ2SVqEdyE.csv#1", "vFo8onDZ2SVqEdyE.parquet", "a.parquet#1"],
)
def test_other_files_stay(tmp_path: Path, name: str) -> None:
    spec = table(tmp_path)
    other = left(tmp_path, name)
    with WrittenFolder.of_table(spec).held():
        assert other.exists()


async def test_files_of_a_statement_that_lives_stay(tmp_path: Path) -> None:
    spec = table(tmp_path)
    folder = WrittenFolder.of_table(spec)
    begun = left(tmp_path)
    with folder.held():  # Removes what was left before.
        assert not begun.exists()
        begun = left(tmp_path)
        await insert(spec)
        assert begun.exists()
    await insert(spec)
    assert not begun.exists()


async def test_files_that_another_program_writes_stay(tmp_path: Path) -> None:
    spec = table(tmp_path)
    young, opened = left(tmp_path, age_s=DAY_S / 2), left(tmp_path, f"{'o' * 16}.parquet#1")
    with opened.open("ab"):
        await insert(spec)
        assert young.exists() and opened.exists()
    await insert(spec)
    assert young.exists() and not opened.exists()


async def test_what_a_statement_that_fails_has_added_is_said(tmp_path: Path) -> None:
    spec = table(tmp_path, "p=7/a.parquet")
    (tmp_path / "t" / "p=9").write_text("a file in place of a folder")
    with pytest.raises(ExecutionError) as caught:
        await insert(spec, "INSERT INTO t SELECT value, 'x', 8 + value % 3 FROM range(9)")
    found = await rows(session({"t": spec}), "SELECT p, count(*) AS n FROM t GROUP BY p")
    added = {str(each["p"]) for each in found} - {"7"}
    for number in ("8", "10"):
        assert (f"p={number}/" in caught.value.message) == (number in added)
    assert ("Remove those of this statement before you run it again" in caught.value.message) == (
        bool(added)
    )
    assert str(tmp_path) not in caught.value.message.partition("; files were added")[2]


def test_files_that_were_added_are_named(tmp_path: Path) -> None:
    folder = WrittenFolder.of_table(table(tmp_path, "p=7/a.parquet"))
    before, error = folder.files(), ExecutionError("the disk is full")
    assert folder.failed(error, before) is error
    for number in range(7):
        table(tmp_path, f"p={number}/b.parquet")
    left(tmp_path, f"p=8/{BEGUN}")
    message = folder.failed(error, before).message
    assert message.startswith(
        "the disk is full; files were added meanwhile, with rows of their partitions: "
        "p=0/b.parquet, p=1/b.parquet,"
    )
    assert "p=4/b.parquet and 2 more. Remove" in message and "a.parquet" not in message
    wrong = InvalidQueryError("a value is wrong")
    assert folder.failed(wrong, before) is wrong


def test_what_may_be_in_a_bucket_is_said() -> None:
    error = ExecutionError("the store is away")
    message = WrittenFolder(None, ".parquet", True).failed(error, frozenset()).message
    assert message.endswith("rows of some partitions may be inserted: look before you run it again")
    assert WrittenFolder(None, ".parquet", False).failed(error, frozenset()) is error
