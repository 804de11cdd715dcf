"""Streams of rows from statements in engine processes."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Protocol

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import StreamTraits
from caraway_executor.engines.causes import EngineLostError
from caraway_executor.engines.crossing import RowsIn

_REFILL = 2
"""After this many messages with rows, the engine is allowed to send as many more."""


class Sender(Protocol):
    """The process that sends the rows."""

    def more(self, number: int, batches: int) -> None: ...

    def stop(self, number: int) -> None: ...


class RemoteStream:
    """Reads the rows that a process sends, and controls how many it may send."""

    def __init__(
        self,
        process: Sender,
        number: int,
        rows: RowsIn,
        reads_only_catalog: bool,
        written: TableName | None,
        mark: str = "",
    ) -> None:
        """Take what the process said of the rows, and the mark of the commit of a write."""
        self.schema: pa.Schema = rows.schema
        self.reads_only_catalog = reads_only_catalog
        self.written = written
        self._mark = mark
        self._process = process
        self._number = number
        self._rows = rows
        self._bodies: deque[tuple[pa.Buffer, bool]] = deque()
        self._batches: deque[pa.RecordBatch] = deque()
        self._is_ended = False
        self._error: BaseException | None = None
        self._news: asyncio.Future[None] | None = None
        self.traits = StreamTraits()
        self._taken = 0
        self._is_begun = False

    @property
    def is_at_end(self) -> bool:
        """True if the end of the rows is already known."""
        return self._is_ended and not (self._batches or self._bodies) and self._error is None

    @property
    def has_rows(self) -> bool:
        """True if rows were received at any time."""
        return bool(self._taken or self._bodies)

    def add(self, body: pa.Buffer | None, is_whole: bool) -> None:
        """Add batches that were received."""
        assert body is not None
        self._bodies.append((body, is_whole))
        self.traits.is_at_hand = True
        self._tell()

    def end(self, error: BaseException | None) -> None:
        """Record the end of the stream, or its error."""
        if isinstance(error, EngineLostError) and self._mark:
            error = EngineLostError(error.cause, error.detail, self._mark)
        self._is_ended, self._error = True, error
        self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if self.written is not None and not self._taken and not self._is_begun:
            # Nothing is written before a reader is there to learn the outcome.
            self._is_begun = True
            self._process.more(self._number, 0)
        if self._batches:
            return self._next_batch()
        while not self._bodies:
            if self._is_ended:
                error, self._error = self._error, None
                if error is not None:
                    raise error
                raise StopAsyncIteration
            self._news = asyncio.get_running_loop().create_future()
            try:
                await self._news
            except asyncio.CancelledError:
                self._close()
                raise
            finally:
                self._news = None
        body, is_whole = self._bodies.popleft()
        self._taken += 1
        if self._taken % _REFILL == 0 and not self._is_ended:
            self._process.more(self._number, _REFILL)
        self._batches += self._rows.batches(
            body, is_whole, stays_plain=self.traits.takes_plain, stays_uncut=self.traits.takes_uncut
        )
        return self._next_batch()

    def _next_batch(self) -> pa.RecordBatch:
        batch = self._batches.popleft()
        self.traits.is_at_hand = bool(self._batches or self._bodies)
        return batch

    async def aclose(self) -> None:
        """Cancel the stream, unless it has ended."""
        self._close()

    def __del__(self) -> None:
        self._close()

    def _close(self) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._process.stop(self._number)
        self._bodies.clear()
        self._batches.clear()
        self.traits.is_at_hand = False
