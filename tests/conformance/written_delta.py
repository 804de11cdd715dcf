"""Delta tables that statements write to. DuckDB runs the SQL that fills them."""

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import deltalake
import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_core.tables import TableSpec
from caraway_engine.sessions.sessions import Session
from tests.kit import duckdb_files
from tests.kit.engine import session

_CHECK = re.compile(r"CHECK \(([^()]*)\)")
_NAMES = (
    "SELECT table_name FROM duckdb_tables() WHERE NOT temporary AND schema_name = 'main' "
    "ORDER BY table_name"
)


class InDelta:
    """A folder of Delta tables. They have constraints, and neither keys nor defaults."""

    def __init__(self, folder: Path, _request: pytest.FixtureRequest) -> None:
        self._folder = folder / "tables"
        self._made: dict[str, str] = {}
        """The statement that creates each table."""
        self.quoted = duckdb_files.quoted

    def run(self, *statements: str) -> None:
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        for name, creating in self._made.items():
            connection.execute(creating)
            rows = DeltaTable(self._folder / name).to_pyarrow_table()
            connection.register("kept", rows)
            connection.execute(f"INSERT INTO {self.quoted(name)} SELECT * FROM kept")
        statements = tuple(each.replace("PRIMARY KEY", "") for each in statements)
        for each in statements:
            connection.execute(each)
        left = [str(name) for (name,) in connection.execute(_NAMES).fetchall()]
        for name in {*self._made} - {*left}:
            del self._made[name]
            shutil.rmtree(self._folder / name)
        for name in left:
            relation = connection.sql(f"SELECT * FROM {self.quoted(name)}")
            made = next((each for each in statements if _creates(each, self.quoted(name))), None)
            listed = connection.execute(f"DESCRIBE {self.quoted(name)}").fetchall()
            required = {each[0] for each in listed if each[2] == "NO"}
            rows = pa.table(relation.to_arrow_table())
            fields = [each.with_nullable(each.name not in required) for each in rows.schema]
            self._made[name] = made or self._made[name]
            self._write(name, rows.cast(pa.schema(fields)))

    def _write(self, name: str, rows: pa.Table) -> None:
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)
        for part in (rows.slice(0, rows.num_rows // 2), rows.slice(rows.num_rows // 2)):
            deltalake.write_deltalake(folder, part, mode="append")
        if found := _CHECK.search(self._made[name]):
            column = found[1].split()[0]
            rule = {"small": f"{column} IS NULL OR {found[1]}"}
            DeltaTable(folder).alter.add_constraint(rule)

    def load(self, name: str, rows: pa.Table) -> None:
        deltalake.write_deltalake(self._folder / name, rows, mode="overwrite")

    def request(self, name: str) -> SourceRequest:
        folder = self._folder
        return SourceRequest(TableName("t"), "delta", name, {}, (), "read", folder, folder)


def _creates(statement: str, name: str) -> bool:
    return statement.startswith(f"CREATE TABLE {name} (")


class NewestSession:
    """A session whose tables are loaded again for each statement, as a scheduler does."""

    def __init__(self, load: Callable[[], Mapping[str, TableSpec]]) -> None:
        self._load = load
        self._tables = load()
        self._last = session(self._tables)

    def start(self, statement: Statement) -> Any:
        if (tables := self._load()) != self._tables:
            self._tables, self._last = tables, session(tables)
        return self._last.start(statement)

    @property
    def snapshot(self) -> CatalogSnapshot:
        return self._last.snapshot


def newest(load: Callable[[], Mapping[str, TableSpec]]) -> Session:
    """Return a session of tables that are loaded again for each statement."""
    return cast("Session", NewestSession(load))
