"""What is the same of tables of DuckDB and of SQLite files: their names, and what is wrong."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest

from caraway_core.errors import DatasetError, QueryError
from caraway_plugins.sources.duckdb import source as duckdb
from caraway_plugins.sources.sqlite import source as sqlite
from tests.kit import duckdb_files, sqlite_files
from tests.kit.engine import rows, session


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file, the module of its source, the package that reads it, and its param."""

    module: ModuleType
    files: ModuleType
    source: Callable[[], duckdb.DuckdbSource | sqlite.SqliteSource]
    package: str
    param: str
    extra: str


KINDS = [
    Kind(duckdb, duckdb_files, duckdb.DuckdbSource, "duckdb", "duckdb_open", "duckdb"),
    Kind(sqlite, sqlite_files, sqlite.SqliteSource, "adbc_driver_sqlite", "sqlite_file", "sqlite"),
]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.extra)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
def file(tmp_path: Path, kind: Kind) -> Path:
    made = tmp_path / "tables with ünï%.db"
    kind.files.run(
        made,
        "CREATE TABLE t (id INTEGER, name VARCHAR)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'B'), (3, NULL)",
    )
    return made


def refused(kind: Kind, file: Path, name: str, **params: str) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        kind.source().resolve(kind.files.request(file, name, **params))
    assert caught.value.message.startswith("dataset 't': ")
    assert str(file.parent) not in caught.value.message
    return caught.value


@pytest.mark.parametrize("name", ["t", "main.t", '"main"."t"', " t ", "T"])
async def test_a_name_has_one_part_or_two(kind: Kind, file: Path, name: str) -> None:
    over = session({"t": kind.files.resolved(file, name)})
    assert await rows(over, "SELECT name FROM t WHERE id = 2") == [{"name": "B"}]


@pytest.mark.parametrize("name", ["", "a.b.c", 'a"b', "."])
def test_other_names_are_refused(kind: Kind, file: Path, name: str) -> None:
    assert refused(kind, file, name).type == "invalid"


def test_what_is_wrong_is_said(kind: Kind, file: Path, tmp_path: Path) -> None:
    assert refused(kind, file, "none").type == "not_found"
    assert refused(kind, file, "other.t").type == "not_found"
    assert refused(kind, tmp_path / "none.db", "t").type == "not_found"
    (tmp_path / "text").write_text("no database at all" * 1_000)
    assert refused(kind, tmp_path / "text", "t").type == "invalid"
    assert kind.param in refused(kind, file, "t", **{kind.param: ""}).message


def test_without_the_package_the_extra_is_named(
    kind: Kind, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_missing = kind.package.__eq__
    monkeypatch.setattr(kind.module, "find_spec", lambda name: None if is_missing(name) else util)
    error = refused(kind, file, "t")
    assert error.type == "unsupported"
    assert f"pip install 'caraway[{kind.extra}]'" in error.message


async def test_others_can_write_while_nothing_is_read(kind: Kind, file: Path) -> None:
    source, over = kind.source(), session({"t": kind.files.resolved(file, "t")})
    assert len(await rows(over, "SELECT * FROM t")) == 3
    before = source.fingerprint(kind.files.request(file, "t"))
    kind.files.run(file, "INSERT INTO t VALUES (4, 'd')")
    assert source.fingerprint(kind.files.request(file, "t")) != before
    assert len(await rows(over, "SELECT * FROM t")) == 4


async def test_a_table_that_is_gone_is_an_error_of_the_statement(kind: Kind, file: Path) -> None:
    over = session({"t": kind.files.resolved(file, "t")})
    kind.files.run(file, "DROP TABLE t")
    with pytest.raises(QueryError, match="it is not what it was when it was loaded"):
        await rows(over, "SELECT * FROM t")
    file.unlink()
    with pytest.raises(QueryError, match="its file is away"):
        await rows(over, "SELECT * FROM t")
