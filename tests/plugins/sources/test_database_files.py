"""What is the same of tables of DuckDB and of SQLite files: their names, and what is wrong."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest
from duckdb import connect

from caraway_core.errors import DatasetError, QueryError
from caraway_plugins.sources.duckdb import source as duckdb
from caraway_plugins.sources.sqlite import source as sqlite
from tests.conformance.written_databases import write
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


@contextmanager
def writing(kind: Kind, file: Path) -> Iterator[Callable[[str], object]]:
    """Run statements in another process's place, which keeps their log."""
    if kind.module is duckdb:
        with connect(str(file)) as connection:
            connection.execute("PRAGMA disable_checkpoint_on_shutdown")
            yield connection.execute
        return
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        yield connection.execute


@pytest.mark.parametrize("name", ["t", "main.t", '"main"."t"', " t ", "T"])
async def test_a_name_has_one_part_or_two(kind: Kind, file: Path, name: str) -> None:
    over = session({"t": kind.files.resolved(file, name)})
    assert await rows(over, "SELECT name FROM t WHERE id = 2") == [{"name": "B"}]


@pytest.mark.parametrize("name", ["", "a.b.c", 'a"b', "."])
def test_other_names_are_refused(kind: Kind, file: Path, name: str) -> None:
    assert refused(kind, file, name).type == "invalid"


NAMES = [
    "a?b.db", "?", "a?mode=rw.db", "a#b.db", "a%3Fb.db", "a;b.db", "it's.db", 'a"b.db', "a b.db",
    "ünï日.db", "a\\b.db", "a*[1]{2}.db", "file:a.db", "temp.db", "locked.db", ":memory:", "a\nb",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
async def test_files_of_any_name_are_read_and_written(
    kind: Kind, tmp_path: Path, name: str
) -> None:
    kind.files.run(tmp_path / "i.db", "CREATE TABLE t (id INTEGER)", "INSERT INTO t VALUES (1)")
    file = (tmp_path / "i.db").rename(tmp_path / name)
    request = replace(kind.files.request(file, "t"), access="read_write")
    source = kind.source()
    before = source.fingerprint(request)
    over = session({"t": source.resolve(request)})
    assert await write(over, "INSERT INTO t VALUES (2)") == 1
    assert await write(over, "UPDATE t SET id = id + 1") == 2
    assert await rows(over, "SELECT id FROM t ORDER BY id") == [{"id": 2}, {"id": 3}]
    assert source.fingerprint(request) != before
    assert [each.name for each in tmp_path.iterdir()] == [name]


async def test_a_folder_may_have_any_name(kind: Kind, tmp_path: Path) -> None:
    folder = tmp_path / "a?b#c"
    folder.mkdir()
    kind.files.run(tmp_path / "i.db", "CREATE TABLE t (id INTEGER)", "INSERT INTO t VALUES (1)")
    request = kind.files.request((tmp_path / "i.db").rename(folder / "i.db"), "t")
    over = session({"t": kind.source().resolve(replace(request, access="read_write"))})
    if kind.module is sqlite:
        assert await write(over, "INSERT INTO t VALUES (2)") == 1
    else:
        with pytest.raises(QueryError, match=r"a `\?` in its name.* no row was inserted"):
            await write(over, "INSERT INTO t VALUES (2)")
    assert (await rows(over, "SELECT min(id) AS id FROM t")) == [{"id": 1}]


def test_the_log_of_a_writer_is_that_of_the_file(kind: Kind, tmp_path: Path) -> None:
    file = tmp_path / "a?b.db"
    request = kind.files.request(file, "t")
    with writing(kind, file) as run:
        run("CREATE TABLE t (id INTEGER)")
        (log,) = set(tmp_path.iterdir()) - {file, tmp_path / "a?b.db-shm"}
        before = kind.source().fingerprint(request)
        run("INSERT INTO t VALUES (1)")
        assert kind.source().fingerprint(request) != before
        assert "wal" in log.name


def test_names_of_files_and_tables_are_not_taken_for_reasons(kind: Kind, tmp_path: Path) -> None:
    folder = tmp_path / "locked busy, not a database"
    folder.mkdir()
    kind.files.run(folder / "a", "CREATE TABLE t (id INTEGER)", 'CREATE TABLE "is locked" (i INT)')
    (folder / "text").write_text("nothing at all" * 1_000)
    assert refused(kind, folder / "text", "t").type == "invalid"
    assert refused(kind, folder / "a", "'is locked'").type == "not_found"


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
