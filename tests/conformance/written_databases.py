"""Databases that statements write to: one joins with a class in `KINDS`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pytest

from caraway_core.errors import QueryError
from caraway_core.ids import TableName
from caraway_core.loading import registry
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import MemoryTable, TableSpec
from caraway_engine.sessions.sessions import Session
from tests.conformance import written_delta
from tests.conformance.written_delta import InDelta
from tests.kit import duckdb_files, mariadb, remote, sqlite_files
from tests.kit.engine import rows, session
from tests.kit.mariadb import Mariadb
from tests.kit.postgres import Server

TABLE = TableName("t")
BEFORE = [
    {"id": 1, "n": 10, "v": "a"}, {"id": 2, "n": None, "v": "b"}, {"id": 3, "n": 30, "v": None},
]  # fmt: skip
"""The rows of `t` before a statement, by `create_rows`."""


class Kind(Protocol):
    """Makes tables in a database."""

    def run(self, *statements: str) -> None: ...

    def load(self, name: str, rows: pa.Table) -> None: ...

    def request(self, name: str) -> SourceRequest: ...

    def quoted(self, name: str) -> str: ...


class InPostgres:
    def __init__(self, _folder: Path, request: pytest.FixtureRequest) -> None:
        self._server: Server = request.getfixturevalue("postgres")
        self.quoted = remote.quoted

    def run(self, *statements: str) -> None:
        self._server.execute(*statements)

    def load(self, name: str, rows: pa.Table) -> None:
        self.run(f"DROP TABLE IF EXISTS {self.quoted(name)} CASCADE")
        remote.load(self._server, name, rows)

    def request(self, name: str) -> SourceRequest:
        return remote.request(self._server, name, pg_pass="hunter2")


class InMysql:
    def __init__(self, _folder: Path, request: pytest.FixtureRequest) -> None:
        self._server: Mariadb = request.getfixturevalue("mariadb_server")
        self.quoted = mariadb.quoted

    def run(self, *statements: str) -> None:
        self._server.execute(*statements)

    def load(self, name: str, rows: pa.Table) -> None:
        self.run(f"DROP TABLE IF EXISTS {self.quoted(name)}")
        listed = ((each.name, mariadb.column_type(each.type)) for each in rows.schema)
        columns = ", ".join(f"{self.quoted(each)} {type_}" for each, type_ in listed)
        self.run(f"CREATE TABLE {self.quoted(name)} ({columns}) CHARSET=utf8mb4")

    def request(self, name: str) -> SourceRequest:
        return mariadb.request(self._server, f'"{name}"')


class InSqlite:
    def __init__(self, folder: Path, _request: pytest.FixtureRequest) -> None:
        self._file = folder / "i.db"
        self.quoted = sqlite_files.quoted

    def run(self, *statements: str) -> None:
        sqlite_files.run(self._file, *statements)

    def load(self, name: str, rows: pa.Table) -> None:
        sqlite_files.load(self._file, name, rows)

    def request(self, name: str) -> SourceRequest:
        return sqlite_files.request(self._file, f'"{name}"')


class InDuckdb:
    def __init__(self, folder: Path, _request: pytest.FixtureRequest) -> None:
        self._file = folder / "i.duckdb"
        self.quoted = duckdb_files.quoted

    def run(self, *statements: str) -> None:
        duckdb_files.run(self._file, *statements)

    def load(self, name: str, rows: pa.Table) -> None:
        duckdb_files.load(self._file, name, rows)

    def request(self, name: str) -> SourceRequest:
        return duckdb_files.request(self._file, f'"{name}"')


KINDS: Mapping[str, Callable[[Path, pytest.FixtureRequest], Kind]] = {
    "delta": InDelta,
    "duckdb": InDuckdb,
    "mysql": InMysql,
    "postgres": InPostgres,
    "sqlite": InSqlite,
}
LAKES = frozenset({"delta", "glue", "iceberg"})
"""Connectors whose tables are files: without keys, defaults, views and lengths of texts."""
TEXTS = {
    **dict.fromkeys(["InPostgres", "InSqlite", "InDuckdb", "InDelta"], "VARCHAR(5)"),
    "InMysql": "VARCHAR(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
}
"""A type of texts that are compared in the database."""


@pytest.fixture(scope="module")
def mariadb_server() -> Iterator[Mariadb]:
    with mariadb.serving() as server:
        yield server


@pytest.fixture(params=sorted(KINDS))
def connector(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=sorted(KINDS.keys() - LAKES))
def keyed(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    """A database of which tables have keys, defaults and views."""
    return KINDS[str(request.param)](tmp_path, request)


@pytest.fixture
def kind(connector: str, tmp_path: Path, request: pytest.FixtureRequest) -> Kind:
    return KINDS[connector](tmp_path, request)


def create(kind: Kind, name: str, columns: str) -> None:
    kind.run(f"DROP TABLE IF EXISTS {kind.quoted(name)}")
    kind.run(f"CREATE TABLE {kind.quoted(name)} ({columns})")


def create_rows(kind: Kind, key: str = "id BIGINT PRIMARY KEY", text: str = "VARCHAR(5)") -> None:
    """Create the table `t` with the rows of `BEFORE`, which keeps numbers below 1,000."""
    create(kind, "t", f"{key}, n INTEGER DEFAULT 7, v {text}, CHECK (n < 1000)")
    kind.run("INSERT INTO t VALUES (1, 10, 'a'), (2, NULL, 'b'), (3, 30, NULL)")


def of_spec(kind: Kind, name: str) -> TableSpec:
    """Return a table that may be written."""
    request = replace(kind.request(name), access="read_write")
    spec: TableSpec = registry.SOURCES.load(request.connector)().resolve(request)
    assert spec.written is not None
    return spec


def of(kind: Kind, name: str, **tables: MemoryTable) -> Session:
    return over_tables(lambda: {"t": of_spec(kind, name), **tables})


def over_tables(load: Callable[[], Mapping[str, TableSpec]]) -> Session:
    """Return a session over tables. Those of which one version is read are loaded again."""
    tables = load()
    if all(each.written in (None, each) for each in tables.values()):
        return session(tables)
    return written_delta.newest(load)


async def write(over: Session, sql: str, **options: Any) -> int:
    (found,) = await rows(over, sql, writable=frozenset({TABLE}), **options)
    return int(found["count"])


async def read_rows(over: Session) -> list[dict[str, Any]]:
    """Return the rows of `t`, ordered by their columns; NULL comes last."""
    listed = await rows(over, "SELECT * FROM t")
    return sorted(
        listed,
        key=lambda row: [(each is None, "" if each is None else each) for each in row.values()],
    )


async def refused(over: Session, sql: str, *words: str, **options: Any) -> QueryError:
    """Return the error of a statement that changes nothing; it has the words, and no secret."""
    before = await read_rows(over)
    with pytest.raises(QueryError) as caught:
        await write(over, sql, **options)
    assert "hunter2" not in caught.value.message
    for each in words:
        assert each in caught.value.message, caught.value.message
    assert await read_rows(over) == before
    return caught.value
