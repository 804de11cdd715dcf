"""A single node whose tables are in a DuckDB file, as far as DuckDB has their types."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from caraway_core.tables import TableSpec
from tests.differential.databases import Load, reading
from tests.kit import duckdb_files

LEAST_TABLES = 0.3
"""The part of the tables that has to be in the file, for the runner to show anything."""


@contextmanager
def _duckdb() -> Iterator[Load]:
    moved: list[bool] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tables.duckdb"

        def load(name: str, rows: pa.Table) -> TableSpec | None:
            duckdb_files.load(file, name, rows)
            found = duckdb_files.resolved(file, duckdb_files.quoted(name))
            moved.append(found.schema.equals(rows.schema))
            return found if moved[-1] else None

        yield load
    assert sum(moved) >= LEAST_TABLES * len(moved), moved


in_duckdb = reading(_duckdb)
