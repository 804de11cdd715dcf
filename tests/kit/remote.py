"""Creates PostgreSQL tables for tests, resolves them as datasets, and records statements."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from caraway_core.ids import TableName
from caraway_core.protocols.remote import RemoteReader, RemoteRows
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import RemoteTable
from caraway_engine.remote import answers, words
from caraway_plugins.sources.postgres.source import PostgresSource
from tests.kit.postgres import Server

quoted = words.of_reader("postgres").quoted
_TYPES = {
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.string(): "text",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamptz",
}


def request(
    server: Server, name: str, declared: Sequence[pa.Field] = (), **params: str
) -> SourceRequest:
    """Return the request of a dataset over a table of the server."""
    root = Path("/")
    given = {**server.params, **params}
    return SourceRequest(
        TableName(name), "postgres", name, given, tuple(declared), "read", root, root
    )


def resolved(server: Server, name: str, declared: Sequence[pa.Field] = ()) -> RemoteTable:
    """Return a table of the server as its source resolves it."""
    table = PostgresSource().resolve(request(server, name, declared))
    assert isinstance(table, RemoteTable)
    return table


def column_type(type_: pa.DataType) -> str | None:
    """Return PostgreSQL's name of a type, or None if no type has the same values."""
    if pa.types.is_decimal128(type_):
        return f"numeric({type_.precision},{type_.scale})"
    return _TYPES.get(type_)


def load(server: Server, name: str, rows: pa.Table, key: str = "") -> None:
    """Create a table with these rows; a key is a column with distinct values."""
    columns = ", ".join(f"{quoted(each.name)} {column_type(each.type)}" for each in rows.schema)
    unique = f", PRIMARY KEY ({quoted(key)})" if key else ""
    text = io.BytesIO()
    csv.write_csv(rows, text, csv.WriteOptions(include_header=False))
    text.seek(0)
    connection = server.connect()
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {quoted(name)} ({columns}{unique})")
            cursor.copy_expert(f"COPY {quoted(name)} FROM STDIN (FORMAT csv)", text)
            cursor.execute(f"ANALYZE {quoted(name)}")
    finally:
        connection.close()


class _Watched:
    """A reader that records the statements it sends."""

    def __init__(self, reader: RemoteReader, sent: list[str]) -> None:
        self._reader = reader
        self._sent = sent

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> RemoteRows:
        self._sent.append(sql)
        return self._reader.read(table, sql, schema)


@contextmanager
def watched(kind: str = "postgres") -> Iterator[list[str]]:
    """Record the statements that the engine of this process sends to databases of a kind."""
    sent: list[str] = []
    reader = answers.reader(kind)
    answers.use(kind, _Watched(reader, sent))
    try:
        yield sent
    finally:
        answers.use(kind, reader)
