"""The base of what writes to a table of a database, in one transaction: its begin, stop and end."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from caraway_core.errors import ExecutionError, InvalidQueryError, QueryError
from caraway_core.protocols.remote import TableChange
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import written_texts


class Reason(NamedTuple):
    """Why a statement failed. It `is_of_values` if other values would be taken."""

    text: str
    is_of_values: bool = False


class DatabaseWrite(ABC):
    """A statement that writes all of its rows, or none."""

    failures: ClassVar[tuple[type[Exception], ...]]
    """The exceptions of the driver for a statement that fails."""
    stop_again_s: ClassVar[float] = 0.2
    """Stopping is repeated, because the statement may start after the first one."""
    verb = "INSERT into"
    done = "inserted"
    subject = "the rows were committed; look whether they are"

    def __init__(self, table: RemoteTable) -> None:
        """Take the table that is written."""
        self._table = table
        self._connection: Any = None
        self._running = threading.Lock()
        self._is_closed = False

    def close(self) -> None:
        """Stop the statement if it runs; any thread may call it."""
        self._is_closed = True
        while not self._running.acquire(timeout=self.stop_again_s):
            self._stop()
        self._running.release()

    def _committed(self, work: Callable[[], int]) -> int:
        """Do the work in a transaction, and return its number of rows.

        Raises:
            QueryError: it failed. The message says what is left of it.
        """
        is_ending = False
        with self._running:
            try:
                if self._is_closed:
                    raise self._stopped()
                self._begin()
                self._prepare()
                count = work()
                if self._is_closed:
                    raise self._stopped()
                is_ending = True
                self._commit()
                return count
            except self.failures as exc:
                raise self._failed(exc, is_ending=is_ending) from exc
            except BaseException as exc:
                if self._keeps_rows():
                    raise ExecutionError(f"{self._title} failed, and {self._kept}") from exc
                raise
            finally:
                self._drop()

    def _refused(self, what: str) -> InvalidQueryError:
        """Return the error of values that the table does not take."""
        return InvalidQueryError(f"{self._title} failed: {what}; {self._nothing}")

    @abstractmethod
    def _begin(self) -> None:
        """Connect, and begin the transaction."""

    def _prepare(self) -> None:  # noqa: B027 -- few statements need it
        """Do what comes first in the transaction, or nothing."""

    @abstractmethod
    def _run(self, sql: str) -> None:
        """Run a statement without rows."""

    @property
    @abstractmethod
    def _target(self) -> str:
        """The table in SQL."""

    @property
    def _relation(self) -> str:
        """The table that gets rows first, in SQL."""
        return self._target

    @abstractmethod
    def _commit(self) -> None:
        """End the transaction."""

    @abstractmethod
    def _stop(self) -> None:
        """Make the thread that works fail; called by another thread."""

    @abstractmethod
    def _drop(self) -> None:
        """Close what is open, which ends a transaction without a trace; it may be nothing."""

    @abstractmethod
    def _reason(self, exc: Exception) -> Reason:
        """Return why a statement failed, without secrets, the statement and paths."""

    def _is_lost(self, exc: Exception) -> bool:
        """Return whether an error leaves open what the server did."""
        return False

    def _keeps_rows(self) -> bool:
        """End the transaction after an error; return whether rows stay, since it was none."""
        return False

    def _stopped(self) -> QueryError:
        return ExecutionError(f"the statement was stopped; {self._nothing}")

    def _failed(self, exc: Exception, *, is_ending: bool) -> QueryError:
        if is_ending and self._is_lost(exc):
            return ExecutionError(
                f"{self._title}: the connection failed while {self.subject} {self.done} before "
                "you run it again"
            )
        reason = self._reason(exc)
        is_kept = not is_ending and self._keeps_rows()
        if reason.is_of_values and not is_kept:
            return self._refused(reason.text)
        left = self._kept if is_kept else self._nothing
        return ExecutionError(f"{self._title} failed: {reason.text}; {left}")

    @property
    def _title(self) -> str:
        return f"{self.verb} {self._table.title}"

    @property
    def _nothing(self) -> str:
        return f"no row was {self.done}"

    @property
    def _kept(self) -> str:
        return f"rows that were {self.done} stay so: the table has no transactions"


class DatabaseInsert(DatabaseWrite):
    """An INSERT of rows of the engine."""

    takes_lists: ClassVar[bool] = False

    def __init__(self, table: RemoteTable, columns: pa.Schema) -> None:
        """Take the columns of the rows."""
        super().__init__(table)
        self._columns = columns

    def insert_rows(self, rows: Iterator[pa.RecordBatch]) -> int:
        """See `RemoteInsert.insert_rows`."""
        if not self.takes_lists:
            written_texts.check(self._columns, self._refused)
        return self._committed(lambda: self._written(rows))

    def _written(self, rows: Iterator[pa.RecordBatch]) -> int:
        """Write rows, and return how many rows of the table that is."""
        return self._inserted(rows)

    @abstractmethod
    def _inserted(self, rows: Iterator[pa.RecordBatch]) -> int:
        """Insert rows into `_relation`, and return their number."""


class DatabaseChange(DatabaseWrite):
    """An UPDATE or DELETE that a database runs."""

    def __init__(self, table: RemoteTable, change: TableChange) -> None:
        """Take the change.

        Raises:
            InvalidQueryError: a value is one that the table cannot keep.
        """
        super().__init__(table)
        self._change = change
        self.verb = "UPDATE of" if change.assigned else "DELETE from"
        self.done = "changed" if change.assigned else "deleted"

    def write_rows(self) -> int:
        """See `RemoteChange.write_rows`."""
        return self._committed(self._changed)

    @abstractmethod
    def _changed(self) -> int:
        """Run the statement, and return how many rows met its condition."""

    def _sql(self, relation: str, assigned: Iterable[str]) -> str:
        """Return the statement, with a new value for each column."""
        condition = f" WHERE {self._change.condition}" if self._change.condition else ""
        if not self._change.assigned:
            return f"DELETE FROM {relation}{condition}"
        return f"UPDATE {relation} SET {', '.join(assigned)}{condition}"

    def _values(self) -> pa.RecordBatch:
        """Return the constants that columns are set to, as a row."""
        found = {each.column: each.value for each in self._change.assigned if not each.sql}
        return pa.RecordBatch.from_arrays(
            [pa.repeat(value, 1) for value in found.values()], names=list(found)
        )
