"""Writes to tables of databases. The engine computes the rows of an INSERT; a plug-in writes."""

import asyncio
import contextvars
from collections.abc import Iterator
from functools import partial
from threading import Lock
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import ExecutionError, InvalidQueryError
from caraway_core.protocols.remote import CommitLookup, RemoteInsert
from caraway_core.tables import RemoteTable, TableSpec
from caraway_engine.execution.streams import OwnStream
from caraway_engine.remote import answers, streams
from caraway_engine.remote.opened import OpenedReads, noted
from caraway_engine.remote.streams import OwnBatch, StartPlan

COLUMN = b"column of the table"
"""The metadata of a field of rows that has another name than the column it is for."""
COUNTED = pa.schema([pa.field("count", pa.uint64(), nullable=False)])


def target(table: TableSpec | None) -> RemoteTable | None:
    """Return the table that a plug-in writes to, if there is one."""
    return table.written if table is not None else None


def find_commit(table: TableSpec | None, mark: str) -> int | None:
    """Return how many rows the commit with a mark wrote; None: the table has no such commit.

    Raises:
        CarawayError: that cannot be found out.
    """
    written = target(table)
    writer = answers.writer(written.reader) if written is not None else None
    if written is None or not isinstance(writer, CommitLookup):
        raise ExecutionError("commits of the table have no mark")
    return writer.find_commit(written, mark)


class Writing(Protocol):
    """A write under way. Its methods block; any thread may call `close`."""

    def write_rows(self) -> int:
        """Write the rows, and return their number."""
        ...

    def close(self) -> None:
        """Stop it."""
        ...


def inserting(table: RemoteTable, columns: pa.Schema, start: StartPlan) -> Writing:
    """Return an INSERT of rows, which `start` returns as a stream of the engine.

    Raises:
        InvalidQueryError: no rows can be inserted into tables of this kind.
    """
    writer = answers.writer(table.reader)
    if writer is None:
        raise InvalidQueryError(
            f"INSERT is not supported: rows of {table.title} cannot be written here"
        )
    return InsertingRows(writer.insert(table, columns), start, columns)


class WriteStream(OwnStream):
    """The result of a write: the number of its rows, once the database has committed them."""

    def __init__(self, writing: Writing, schema: pa.Schema) -> None:
        self._writing = writing
        self._schema = schema
        self._is_begun = False
        streams.closer.start()

    async def __anext__(self) -> OwnBatch:
        if self._is_begun:
            raise StopAsyncIteration
        self._is_begun = True
        loop = asyncio.get_running_loop()
        # The thread has the mark of the commit, too.
        write_rows = partial(contextvars.copy_context().run, self._writing.write_rows)
        count = await loop.run_in_executor(streams.pool, write_rows)
        column = pa.array([count], self._schema.types[0])
        return OwnBatch(pa.RecordBatch.from_arrays([column], schema=self._schema))

    def close(self) -> None:
        """See `OwnStream.close`."""
        streams.closer.give(self._writing)


class InsertingRows:
    """An INSERT under way, or another write of rows."""

    def __init__(
        self,
        insert: RemoteInsert,
        start: StartPlan,
        columns: pa.Schema,
        nothing: str = "no row was inserted",
    ) -> None:
        """Take the rows and their columns, and what to say where nothing is done."""
        self._insert = insert
        self._start = start
        self._nothing = nothing
        self._columns = columns
        self._opened = OpenedReads()
        self._is_closed = False
        self._lock = Lock()

    def write_rows(self) -> int:
        with self._lock:
            if self._is_closed:
                raise ExecutionError(f"the statement was stopped; {self._nothing}")
        return self._insert.insert_rows(self._rows())

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
        try:
            self._opened.close()
        finally:
            self._insert.close()

    def _rows(self) -> Iterator[pa.RecordBatch]:
        with noted(self._opened):
            stream = self._start()
        for batch in stream:
            if self._is_closed:
                raise ExecutionError(f"the statement was stopped; {self._nothing}")
            yield _typed(batch.to_pyarrow(), self._columns, self._nothing)


def _typed(batch: pa.RecordBatch, columns: pa.Schema, nothing: str) -> pa.RecordBatch:
    """Return rows with the types of a table.

    Raises:
        InvalidQueryError: a value does not fit its column.
    """
    made = []
    for array, field in zip(batch.columns, columns, strict=True):
        try:
            made.append(array if array.type == field.type else pc.cast(array, field.type))
        except pa.ArrowException as exc:
            name = (field.metadata or {}).get(COLUMN, field.name.encode()).decode()
            raise InvalidQueryError(
                f"a value for column '{name}' is not a {field.type}; {nothing}"
            ) from exc
    return pa.RecordBatch.from_arrays(made, schema=columns)
