"""The rows of an upload as they arrive, and the log entries that are stored meanwhile."""

from collections.abc import Callable
from functools import partial
from types import TracebackType

import pyarrow as pa

from caraway_acceleration.changes.early_entries import EarlyEntries
from caraway_acceleration.changes.log_entries import ENTRY_BYTES
from caraway_core.changes import Changes
from caraway_gateway.flight import uploads


class ArrivingRows:
    """The rows of one upload, in the types of its dataset. Its methods block.

    Rows that fill a log entry are stored while more arrive. An upload that fails before `finish`
    has returned leaves nothing.
    """

    def __init__(
        self,
        fit: Callable[[pa.Table], pa.Table],
        most_bytes: int,
        begin: Callable[[], EarlyEntries | None],
        post: Callable[[Callable[[], None]], None],
        finish: Callable[[EarlyEntries], Changes],
    ) -> None:
        """Take what reaches the event loop: to `begin` entries, to `post` calls, to `finish`."""
        self._fit = fit
        self._most_bytes = most_bytes
        self._begin = begin
        self._post = post
        self._finish = finish
        self._batches: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._parts: list[pa.Table] = []
        self._fitted_bytes = 0
        self._early: EarlyEntries | None = None

    def __enter__(self) -> "ArrivingRows":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None
    ) -> None:
        if exc is not None and self._early is not None:
            self._post(self._early.discard)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows.

        Raises:
            InvalidArgument: they do not fit into the dataset, or are too many.
        """
        self._batches.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= ENTRY_BYTES:
            is_first = not self._parts
            rows = self._fitted(batch.schema)
            if is_first:
                self._early = self._begin()
            self._store(rows)

    def finish(self, schema: pa.Schema) -> tuple[pa.Table, Changes | None]:
        """Return all rows, and their changes where they are stored already.

        Raises:
            InvalidArgument: they do not fit into the dataset, or are too many.
            CarawayError: they cannot be stored.
        """
        if self._batches or not self._parts:
            self._store(self._fitted(schema))
        rows = pa.concat_tables(self._parts)
        return rows, None if self._early is None else self._finish(self._early)

    def _fitted(self, schema: pa.Schema) -> pa.Table:
        rows = self._fit(pa.Table.from_batches(self._batches, schema))
        self._batches, self._waiting_bytes = [], 0
        # Values of a dictionary, or NULLs without a type, were sent once.
        self._fitted_bytes += rows.nbytes
        if self._fitted_bytes > self._most_bytes:
            del rows
            uploads.give_back()
            raise uploads.too_many_rows(self._most_bytes)
        self._parts.append(rows)
        return rows

    def _store(self, rows: pa.Table) -> None:
        if self._early is not None:
            self._post(partial(self._early.add, rows))
