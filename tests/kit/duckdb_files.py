"""Writes tables into DuckDB files for tests, and resolves them as datasets."""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.duckdb.source import DuckdbSource


def request(
    file: Path, name: str, declared: Sequence[pa.Field] = (), **params: str
) -> SourceRequest:
    """Return the request of a dataset over a table of the file."""
    given = {"duckdb_open": str(file), **params}
    return SourceRequest(
        TableName("t"), "duckdb", name, given, tuple(declared), "read", file.parent, file.parent
    )


def resolved(file: Path, name: str, declared: Sequence[pa.Field] = ()) -> RemoteTable:
    """Return a table of the file as its source resolves it."""
    return DuckdbSource().resolve(request(file, name, declared))


def quoted(name: str) -> str:
    """Return a name as DuckDB reads it."""
    return '"' + name.replace('"', '""') + '"'


def load(file: Path, name: str, rows: pa.Table) -> None:
    """Create or replace a table with these rows."""
    with duckdb.connect(str(file)) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        # Compressed, 0.0 and -0.0 after one another are one value.
        connection.execute("PRAGMA force_compression = 'uncompressed'")
        connection.register("rows_to_load", rows)
        connection.execute(f"CREATE OR REPLACE TABLE {quoted(name)} AS SELECT * FROM rows_to_load")


def run(file: Path, *statements: str) -> None:
    """Run statements that write the file."""
    with duckdb.connect(str(file)) as connection:
        for each in statements:
            connection.execute(each)
