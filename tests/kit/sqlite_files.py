"""Writes tables into SQLite files for tests, and resolves them as datasets."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.sqlite.source import SqliteSource

_TYPES = {
    pa.int16(): "SMALLINT",
    pa.int32(): "INT4",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.string(): "TEXT",
    pa.binary(): "BLOB",
    pa.timestamp("us"): "TIMESTAMP",
    pa.timestamp("us", "UTC"): "TIMESTAMPTZ",
}


def request(
    file: Path, name: str, declared: Sequence[pa.Field] = (), **params: str
) -> SourceRequest:
    """Return the request of a dataset over a table of the file."""
    given = {"sqlite_file": str(file), **params}
    return SourceRequest(
        TableName("t"), "sqlite", name, given, tuple(declared), "read", file.parent, file.parent
    )


def resolved(file: Path, name: str, declared: Sequence[pa.Field] = ()) -> RemoteTable:
    """Return a table of the file as its source resolves it."""
    return SqliteSource().resolve(request(file, name, declared))


def quoted(name: str) -> str:
    """Return a name as SQLite reads it."""
    return '"' + name.replace('"', '""') + '"'


def column_type(type_: pa.DataType) -> str | None:
    """Return SQLite's name of a type, or None if no type has the same values."""
    if is_long(type_):
        return "TEXT"
    if pa.types.is_decimal128(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    return _TYPES.get(type_)


def is_long(type_: pa.DataType) -> bool:
    """Return whether decimals have more digits than doubles, so that they are kept as text."""
    return bool(pa.types.is_decimal128(type_) and type_.precision > 15)


def kept(rows: pa.Table) -> pa.Table:
    """Return rows as SQLite keeps them, which has no NaN and no -0.0."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            column = rows.column(number)
            column = pc.if_else(pc.is_nan(column), None, column)
            rows = rows.set_column(number, field, pc.if_else(pc.equal(column, 0.0), 0.0, column))
    return rows


def load(file: Path, name: str, rows: pa.Table) -> None:
    """Create or replace a table with these rows."""
    columns = ", ".join(f"{quoted(each.name)} {column_type(each.type)}" for each in rows.schema)
    marks = ", ".join("?" * rows.num_columns)
    values = zip(*(_values(each) for each in rows.columns), strict=True)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
        connection.execute(f"CREATE TABLE {quoted(name)} ({columns})")
        connection.executemany(f"INSERT INTO {quoted(name)} VALUES ({marks})", values)
        connection.execute("ANALYZE")


def run(file: Path, *statements: str) -> None:
    """Run statements that write the file."""
    with closing(sqlite3.connect(file)) as connection, connection:
        for each in statements:
            connection.execute(each)


def _values(column: pa.ChunkedArray) -> list[object]:
    """Return values as SQLite keeps them: those that it has no type for as text."""
    if pa.types.is_temporal(column.type) or pa.types.is_decimal(column.type):
        column = pc.cast(column, pa.string())
    return [int(each) if isinstance(each, bool) else each for each in column.to_pylist()]
