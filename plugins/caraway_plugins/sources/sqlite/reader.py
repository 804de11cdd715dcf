"""Runs statements over SQLite files, each with a connection of its own."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_manager import dbapi

from caraway_core.errors import ExecutionError, InvalidQueryError, QueryError
from caraway_core.protocols.remote import RemoteInsert
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.decimal_texts import decimals
from caraway_plugins.sources.sqlite import connecting, forms

_BATCH_ROWS = 16 * 1024


class SqliteReader:
    """Reads tables of any number of files."""

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> "SqliteRows":
        """Return the rows of a statement; it starts when the first rows are read."""
        return SqliteRows(table, sql, schema)

    def insert(self, table: RemoteTable, columns: pa.Schema) -> RemoteInsert:
        """Return an INSERT of rows; it starts when it is run."""
        from caraway_plugins.sources.sqlite import writer

        return writer.SqliteInsert(table, columns)


class SqliteRows:
    """The rows of a statement, read in batches.

    SQLite's driver has no way to stop a statement: once closed, the read ends with its next batch.
    """

    def __init__(self, table: RemoteTable, sql: str, schema: pa.Schema) -> None:
        self._table, self._schema = table, schema
        self._sql = _typed_by_first_row(sql, schema)
        self._connection: Any = None
        self._cursor: Any = None
        self._batches: Any = None
        self._reading = threading.Lock()
        self._is_closed = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._next()) is not None:
            if batch.num_rows:
                yield _typed(self._table, batch, self._schema)

    def close(self) -> None:
        """Close the connection; a batch that is being read is the last one."""
        self._is_closed = True
        if self._reading.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._reading.release()

    def _next(self) -> pa.RecordBatch | None:
        with self._reading:
            try:
                if self._is_closed:
                    raise StopIteration
                if self._batches is None:
                    self._batches = self._begun()
                    return self._batches.read_next_batch().slice(1)
                return self._batches.read_next_batch()
            except StopIteration:
                self._end()
                return None
            except (dbapi.Error, pa.ArrowException, OSError) as exc:
                self._end()
                raise _error(self._table, self._schema, exc) from exc

    def _begun(self) -> Any:
        self._connection = connecting.connect(self._table.login["path"])
        connecting.run(self._connection, self._table.login["view"])
        self._cursor = self._connection.cursor()
        rows = {"adbc.sqlite.query.batch_rows": str(_BATCH_ROWS)}
        self._cursor.adbc_statement.set_options(**rows)
        self._cursor.execute(self._sql)
        return self._cursor.fetch_record_batch()

    def _end(self) -> None:
        self._is_closed = True
        self._batches = None
        for each in (self._cursor, self._connection):
            if each is not None:
                with suppress(dbapi.Error):
                    each.close()
        self._cursor = self._connection = None


def _typed_by_first_row(sql: str, schema: pa.Schema) -> str:
    """Add a first row, because the driver takes the types of columns from their first values.

    The limit keeps SQLite from taking the statement apart, and with that its order.
    """
    first = ", ".join(forms.filler(each) for each in schema.types)
    return f"SELECT {first} UNION ALL SELECT * FROM (SELECT * FROM ({sql}) LIMIT -1)"


def _typed(table: RemoteTable, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast the columns to the requested types.

    Raises:
        InvalidQueryError: a value does not fit its column, or is not UTF-8.
    """
    columns = []
    for array, field in zip(batch.columns, schema, strict=True):
        try:
            array.validate(full=True)
            columns.append(_cast(array, field.type))
        except pa.ArrowException as exc:
            raise _unfit(table, field.name, field.type) from exc
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if array.type == type_:
        return array
    if pa.types.is_time(type_):  # Arrow reads them only with a day.
        moments = pc.binary_join_element_wise("1970-01-01", array, " ")
        return pc.cast(pc.cast(moments, pa.timestamp(type_.unit)), type_)
    if pa.types.is_decimal(type_) and pa.types.is_string(array.type):
        return decimals(array, type_)
    return pc.cast(array, type_)


def _unfit(table: RemoteTable, name: str, type_: pa.DataType) -> InvalidQueryError:
    return InvalidQueryError(
        f"{table.title}: a value of column '{name}' is not a {type_}; declare the column under "
        "'columns' with a type that fits, for example text"
    )


def _error(table: RemoteTable, schema: pa.Schema, exc: Exception) -> QueryError:
    """Convert an error; paths of this machine are not shown."""
    said = str(exc)
    if (name := forms.unfit(said)) is not None:
        type_ = {each.name: each.type for each in table.columns}.get(name, "value of its type")
        return _unfit(table, name, type_)
    if "integer overflow" in said:
        return InvalidQueryError(
            f"overflow: {table.title}: a number is too large for its type; cast what is computed "
            "to DECIMAL(38, 0) or DOUBLE first"
        )
    if "locked" in said or "busy" in said:
        reason = "another process writes to its file"
    elif "no such" in said:
        reason = "it is not what it was when it was loaded"
    elif "failed to open" in said or "unable to open" in said or "readonly" in said:
        reason = "its file is away"
    else:
        reason = "SQLite failed"
    return ExecutionError(f"{table.title} cannot be read: {reason}; run the query again")
