"""Writes to tables of PostgreSQL: an INSERT by COPY, an UPDATE and a DELETE as they are."""

from collections.abc import Iterator
from contextlib import suppress

import psycopg2
import pyarrow as pa
import pyarrow.compute as pc

from caraway_plugins.sources import driver_messages, written_texts
from caraway_plugins.sources.database_writes import (
    DatabaseChange,
    DatabaseInsert,
    DatabaseWrite,
    Reason,
)
from caraway_plugins.sources.postgres.databases import conninfo

_ESCAPES = (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
_NULL = "\\N"
_OF_VALUES = ("22", "23", "44")
"""Classes of SQLSTATE: values that do not fit, constraints, and the condition of a view."""
_OF_TABLES = ("42P07", "3F000", "2BP01", "42809", "42P01")
"""A table is there, or a schema is not; a table is needed by others, or is none."""
_BROKEN = ("08", "57P")
"""Classes of SQLSTATE: a lost connection, or a server that shuts down."""
types = pa.types


class PostgresWrite(DatabaseWrite):
    """A statement that writes to a table of PostgreSQL."""

    failures = (psycopg2.Error,)

    def _begin(self) -> None:
        # The first statement begins the transaction.
        self._connection = psycopg2.connect(conninfo(self._table.login))
        self._connection.readonly = False
        self._connection.set_client_encoding("UTF8")

    def _commit(self) -> None:
        self._connection.commit()

    def _run(self, sql: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)

    @property
    def _target(self) -> str:
        return ".".join(map(quoted, self._table.relation))

    def _stop(self) -> None:
        if (connection := self._connection) is not None:
            with suppress(psycopg2.Error):
                connection.cancel()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _is_lost(self, exc: Exception) -> bool:
        state = getattr(exc, "pgcode", None) or ""
        return not state or state.startswith(_BROKEN)

    def _reason(self, exc: Exception) -> Reason:
        # Of what the server says, only its first message is shown.
        assert isinstance(exc, psycopg2.Error)
        said = exc.diag.message_primary or "the connection failed"
        if driver_messages.is_of_nan(said):
            return Reason(driver_messages.NAN_COMPARED, is_of_values=True)
        state = exc.pgcode or ""
        return Reason(said, state[:2] in _OF_VALUES or state in _OF_TABLES)


class PostgresInsert(PostgresWrite, DatabaseInsert):
    """An INSERT that is a COPY, which takes texts of all types."""

    def _inserted(self, rows: Iterator[pa.RecordBatch]) -> int:
        lines = _Lines(rows)
        try:
            with self._connection.cursor() as cursor:
                names = ", ".join(map(quoted, self._columns.names))
                cursor.copy_expert(f"COPY {self._relation} ({names}) FROM STDIN", lines)
                return int(cursor.rowcount)
        except psycopg2.Error as exc:
            if lines.error is not None:
                raise lines.error from exc
            raise


class PostgresChange(PostgresWrite, DatabaseChange):
    """An UPDATE or DELETE whose constants are texts of no type, which the columns take."""

    def _changed(self) -> int:
        row = self._values()
        written_texts.check(row.schema, self._refused)
        values = {
            field.name: _literal(written_texts.of(array, _hex, "+00")[0].as_py())
            for array, field in zip(row.columns, row.schema, strict=True)
        }
        assigned = (
            f"{quoted(each.column)} = {each.sql or values[each.column]}"
            for each in self._change.assigned
        )
        with self._connection.cursor() as cursor:
            cursor.execute(self._sql(self._relation, assigned))
            return int(cursor.rowcount)


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


def _hex(value: bytes) -> str:
    return f"\\x{value.hex()}"


def _literal(text: str | None) -> str:
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """Return a name as it is written in statements."""
    return '"' + name.replace('"', '""') + '"'
