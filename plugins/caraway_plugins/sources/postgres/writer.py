"""Inserts rows into PostgreSQL, by COPY in one transaction."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg2
import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import ExecutionError, QueryError
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import written_texts
from caraway_plugins.sources.postgres.databases import conninfo

_STOP_AGAIN_S = 0.2
_ESCAPES = (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
_NULL = "\\N"
_OF_VALUES = ("22", "23", "44")
"""Classes of SQLSTATE: values that do not fit, constraints, and the condition of a view."""
types = pa.types


class PostgresInsert:
    """An INSERT that is a COPY, which takes texts of all types."""

    def __init__(self, table: RemoteTable, columns: pa.Schema) -> None:
        self._table, self._columns = table, columns
        self._connection: Any = None
        self._running = threading.Lock()
        self._is_closed = False

    def run(self, rows: Iterator[pa.RecordBatch]) -> int:
        """See `RemoteInsert.run`."""
        written_texts.check(self._table, self._columns)
        is_ending, lines = False, _Lines(rows)
        with self._running:
            try:
                self._connection = psycopg2.connect(conninfo(self._table.login))
                self._connection.readonly = False
                self._connection.set_client_encoding("UTF8")
                with self._connection.cursor() as cursor:
                    cursor.copy_expert(_statement(self._table, self._columns), lines)
                    count = int(cursor.rowcount)
                if self._is_closed:
                    raise psycopg2.OperationalError("stopped")
                is_ending = True
                self._connection.commit()
                return count
            except psycopg2.Error as exc:
                if lines.error is not None:
                    raise lines.error from exc
                raise _error(self._table, exc, is_ending=is_ending) from exc
            finally:
                if self._connection is not None:
                    self._connection.close()

    def close(self) -> None:
        """See `RemoteInsert.close`."""
        self._is_closed = True
        while not self._running.acquire(timeout=_STOP_AGAIN_S):
            connection = self._connection
            if connection is not None:
                with suppress(psycopg2.Error):
                    connection.cancel()
        self._running.release()


class _Lines:
    """Rows as the text format of COPY, which psycopg2 reads as a file."""

    def __init__(self, rows: Iterator[pa.RecordBatch]) -> None:
        self._rows = rows
        self._text = b""
        self.error: BaseException | None = None

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the end."""
        while not self._text:
            try:
                batch = next(self._rows, None)
                self._text = b"" if batch is None else _lines(batch)
            except BaseException as exc:  # psycopg2 keeps only its text.
                self.error = exc
                raise
            if batch is None:
                return b""
        part, self._text = self._text[:size], self._text[size:]
        return part


def _lines(batch: pa.RecordBatch) -> bytes:
    if not batch.num_rows:
        return b""
    columns = [pc.fill_null(_texts(each), _NULL) for each in batch.columns]
    lines = pc.binary_join_element_wise(*columns, "\t").to_pylist()
    return ("\n".join(lines) + "\n").encode()


def _texts(array: pa.Array) -> pa.Array:
    texts = written_texts.of(array, lambda value: f"\\\\x{value.hex()}", "+00")
    if types.is_string(array.type):
        for plain, escaped in _ESCAPES:
            texts = pc.replace_substring(texts, plain, escaped)
    return texts


def _statement(table: RemoteTable, columns: pa.Schema) -> str:
    relation = ".".join(map(_quoted, table.relation))
    return f"COPY {relation} ({', '.join(map(_quoted, columns.names))}) FROM STDIN"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _error(table: RemoteTable, exc: psycopg2.Error, *, is_ending: bool) -> QueryError:
    """Convert an error; of what the server says, only its first message is shown."""
    state, said = exc.pgcode or "", exc.diag.message_primary or "the connection failed"
    if is_ending and not state:
        return ExecutionError(
            f"INSERT into {table.title}: the connection failed while the rows were committed; look "
            "whether they are there before you insert them again"
        )
    if state[:2] in _OF_VALUES:
        return written_texts.refused(table, said)
    return ExecutionError(f"INSERT into {table.title} failed: {said}; no row was inserted")
