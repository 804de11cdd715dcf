"""The base of what reads the rows of a statement in a database: its begin, its stop and its end."""

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from caraway_core.errors import ExecutionError, InvalidQueryError, QueryError
from caraway_core.tables import RemoteTable

TOO_LARGE = "a number is too large for its type"
_OVERFLOW = re.compile("out of range|overflow", re.IGNORECASE)


class DatabaseRows(ABC):
    """The rows of a statement, read in batches; the statement starts with the first read.

    One thread at a time uses the connection: the one that reads, or the one that closes.
    """

    failures: ClassVar[tuple[type[Exception], ...]]
    """The exceptions of the driver for a statement that fails."""
    stop_again_s: ClassVar[float] = 0.2
    """Stopping is repeated, because the statement may start after the first one."""
    advice: ClassVar[str] = "check the database, then run the query again"
    """The advice of errors."""

    def __init__(self, table: RemoteTable, sql: str, schema: pa.Schema) -> None:
        """Take a statement whose columns become those of the schema, in order."""
        self._table, self._sql, self._schema = table, sql, schema
        self._connection: Any = None
        self._batches: Iterator[object] | None = None
        self._reading = threading.Lock()
        self._is_closed = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._next()) is not None:
            yield self._typed(batch)

    def close(self) -> None:
        """Stop the statement if it is running, and close its connection."""
        self._is_closed = True
        while not self._reading.acquire(timeout=self.stop_again_s):
            self._stop()
        try:
            self._end()
        finally:
            self._reading.release()

    @abstractmethod
    def _begin(self) -> Iterator[object]:
        """Connect and run the statement; return its batches."""

    @abstractmethod
    def _stop(self) -> None:
        """Make the thread that reads fail or return; called by another thread."""

    @abstractmethod
    def _drop(self) -> None:
        """Close what is open, innermost first; it may be nothing."""

    @abstractmethod
    def _column(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        """Return a column with the requested type.

        Raises:
            pa.ArrowException, ValueError: a value does not fit.
        """

    def _error(self, exc: Exception) -> QueryError:
        """Convert an error of the driver."""
        if (message := self._overflow(exc)) is not None:
            return overflow(self._table, message)
        reason = self._reason(exc)
        return ExecutionError(f"{self._table.title} cannot be read: {reason}; {self.advice}")

    def _overflow(self, exc: Exception) -> str | None:
        """Return the message about a number that is too large, or None for another error."""
        return TOO_LARGE if is_overflow(str(exc)) else None

    def _reason(self, exc: Exception) -> str:
        """Return why a statement failed, without secrets, the statement and paths."""
        return "the database failed"

    def _finish(self) -> None:
        """Let go of the connection of a statement that was read to its end."""
        self._drop()

    def _columns(self, batch: Any) -> Sequence[pa.Array]:
        """Return the columns of a batch as the driver gives them."""
        columns: Sequence[pa.Array] = batch.columns
        return columns

    def _next(self) -> object:
        """Return the next batch, or None at the end."""
        with self._reading:
            if self._is_closed:
                self._end()
                return None
            try:
                if self._batches is None:
                    self._batches = self._begin()
                batch = next(self._batches, None)
                if batch is None:
                    self._is_closed, self._batches = True, None
                    self._finish()
                return batch
            except self.failures as exc:
                self._end()
                raise self._error(exc) from exc

    def _end(self) -> None:
        self._is_closed, self._batches = True, None
        self._drop()

    def _typed(self, batch: object) -> pa.RecordBatch:
        """Return a batch with the requested types.

        Raises:
            InvalidQueryError: a value does not fit its column.
        """
        columns = []
        for values, field in zip(self._columns(batch), self._schema, strict=True):
            try:
                columns.append(self._column(values, field.type))
            except (pa.ArrowException, ValueError) as exc:
                raise unfit(self._table, field.name, field.type) from exc
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def unfit(table: RemoteTable, name: str, type_: object) -> InvalidQueryError:
    """Return the error of a value that does not fit its column."""
    return InvalidQueryError(
        f"{table.title}: a value of column '{name}' is not a {type_}; declare the column under "
        "'columns' with a type that fits, for example text"
    )


def is_overflow(said: str) -> bool:
    """Return whether a message of any database says that a number is too large."""
    return bool(_OVERFLOW.search(said))


def overflow(table: RemoteTable, said: str = TOO_LARGE) -> QueryError:
    """Return the error of a number that is too large."""
    return InvalidQueryError(
        f"overflow: {table.title}: {said}; cast what is computed to DECIMAL(38, 0) or DOUBLE first"
    )
