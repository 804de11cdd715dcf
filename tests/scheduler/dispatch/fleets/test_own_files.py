from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.tables import FileScan, FilesTable, StoreSpec, TableSpec
from caraway_engine.sessions import distribution
from caraway_scheduler.dispatch.fleets import own_files
from caraway_scheduler.dispatch.fleets.own_files import OwnFiles
from tests.kit.engine import memory

SCHEMA = pa.schema([("v", pa.int64())])


def scan(path: str) -> FileScan:
    return FileScan("csv", (path,), SCHEMA, ".csv")


@pytest.fixture
def tables(tmp_path: Path) -> dict[TableName, TableSpec]:
    for folder in ("cache/http", "data"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.csv").write_text("v\n1\n")
    ours, bucket = scan(f"{tmp_path}/cache/http/a.csv"), StoreSpec("s3", "b", "b", {})
    specs: dict[str, TableSpec] = {
        "ours": FilesTable(SCHEMA, (ours,)),
        "shared": FilesTable(SCHEMA, (scan(f"{tmp_path}/data/a.csv"),)),
        "outside": FilesTable(SCHEMA, (scan(f"{tmp_path}/cache/../data/a.csv"),)),
        "remote": FilesTable(SCHEMA, (replace(ours, store=bucket),)),
        "memory": memory(v=[1]),
    }
    return {TableName(name): spec for name, spec in specs.items()}


def test_files_of_the_cache_are_found(tmp_path: Path, tables: dict[TableName, TableSpec]) -> None:
    made = OwnFiles(tmp_path / "cache")
    assert made.tables(tables) == {"ours"}
    (file,) = made.find(tables)
    assert (file.path, file.size_bytes, file.suffix) == (f"{tmp_path}/cache/http/a.csv", 4, ".csv")
    assert own_files.content(file).to_pybytes() == b"v\n1\n"


def test_tables_over_cached_files_are_not_divided(
    tmp_path: Path, tables: dict[TableName, TableSpec]
) -> None:
    facts = distribution.facts(tables, OwnFiles(tmp_path / "cache").tables(tables))
    divisible = {name for name, each in facts.items() if each.is_divisible}
    assert divisible == {"shared", "outside", "remote"}


def test_large_files_have_no_digest(tmp_path: Path, tables: dict[TableName, TableSpec]) -> None:
    (file,) = OwnFiles(tmp_path / "cache", most_bytes=3).find(tables)
    assert file.digest == ""


def test_empty_file_can_be_sent(tmp_path: Path, tables: dict[TableName, TableSpec]) -> None:
    (tmp_path / "cache/http/a.csv").write_text("")
    (file,) = OwnFiles(tmp_path / "cache").find(tables)
    assert own_files.content(file).size == 0


def test_file_that_is_gone_is_left_out(tmp_path: Path, tables: dict[TableName, TableSpec]) -> None:
    made = OwnFiles(tmp_path / "cache")
    (file,) = made.find(tables)
    (tmp_path / "cache/http/a.csv").unlink()
    with pytest.raises(ExecutionError, match="removed from the scheduler's cache"):
        own_files.content(file)
    assert OwnFiles(tmp_path / "cache").find(tables) == ()
