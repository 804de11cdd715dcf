"""A single node whose tables are in a SQLite file, as far as SQLite has their types and values."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from caraway_core.tables import TableSpec
from tests.differential.databases import Load, reading
from tests.kit import sqlite_files


@contextmanager
def _sqlite() -> Iterator[Load]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tables.db"

        def load(name: str, rows: pa.Table) -> TableSpec | None:
            if not _is_kept(rows):
                return None
            sqlite_files.load(file, name, rows)
            declared = rows.schema if any(map(sqlite_files.is_long, rows.schema.types)) else ()
            return sqlite_files.resolved(file, sqlite_files.quoted(name), list(declared))

        yield load


def _is_kept(rows: pa.Table) -> bool:
    names = [each.lower() for each in rows.schema.names]
    if len(set(names)) < len(names) or not all(map(sqlite_files.column_type, rows.schema.types)):
        return False
    doubles = [each.name for each in rows.schema if pa.types.is_floating(each.type)]
    found, kept = rows.select(doubles), sqlite_files.kept(rows).select(doubles)
    return repr(found.to_pydict()) == repr(kept.to_pydict())  # Arrow takes -0.0 for 0.0.


in_sqlite = reading(_sqlite)
