"""Catalogs of PyIceberg over the tables of a DuckDB in memory: in SQLite, PostgreSQL and Glue."""

from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa
from pyiceberg.catalog import Catalog

from tests.kit import iceberg_tables
from tests.kit.iceberg_folders import FolderOfTables

_TABLES = """
SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'memory'
"""
_SCHEMAS = """
SELECT schema_name FROM information_schema.schemata WHERE catalog_name = 'memory'
AND schema_name NOT IN ('main', 'information_schema', 'pg_catalog')
"""


@dataclass
class PointedTables:
    """Tables that PyIceberg registers in a catalog after each statement."""

    folder: Path
    catalog: Catalog | FolderOfTables
    connection: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    _written: dict[tuple[str, str], pa.Table] = field(default_factory=dict)
    _schemas: set[str] = field(default_factory=set)
    _count: int = 0

    def run(self, *statements: str) -> None:
        """Run statements over the tables."""
        for each in statements:
            self.connection.execute(each)
        self._follow()

    def _follow(self) -> None:
        there = {(str(a), str(b)) for a, b in self.connection.execute(_TABLES).fetchall()}
        schemas = {str(name) for (name,) in self.connection.execute(_SCHEMAS).fetchall()}
        for gone in self._written.keys() - there:
            self.catalog.drop_table(gone)
            del self._written[gone]
        for name in self._schemas - schemas:
            self.catalog.drop_namespace(name)
        for name in schemas - self._schemas:
            self.catalog.create_namespace_if_not_exists(name)
        self._schemas = schemas
        for place in sorted(there):
            self._register(place)

    def _register(self, place: tuple[str, str]) -> None:
        quoted = ".".join('"' + each.replace('"', '""') + '"' for each in place)
        rows = self.connection.execute(f"SELECT * FROM {quoted}").to_arrow_table()
        before = self._written.get(place)
        if before is not None and before.equals(rows):
            return
        self._count += 1
        name = f"t{self._count}"
        iceberg_tables.create(self.folder, rows, name)
        location = iceberg_tables.newest(self.folder / name).as_uri()
        if before is not None:
            self.catalog.drop_table(place)
        self.catalog.register_table(place, location)
        self._written[place] = rows
