"""Reads a stream while its last batches are still being sent."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pyarrow as pa

from caraway_core.concurrency import tasks
from caraway_core.protocols.dispatch import BatchStream
from caraway_executor.engines.crossing import part_rows

_MOST_AHEAD = 4


class AheadReader:
    """Batches that were read and not yet taken."""

    def __init__(self) -> None:
        self._batches: deque[pa.RecordBatch] = deque()
        self._is_ended = False
        self._error: BaseException | None = None
        self._changed = asyncio.Event()

    async def read(self, stream: BatchStream) -> None:
        """Read a stream to its end, a few batches ahead."""
        try:
            async for batch in stream:
                self._batches.append(batch)
                self._changed.set()
                while len(self._batches) >= _MOST_AHEAD:
                    await self._next_change()
        except BaseException as exc:
            self._error = exc
            if isinstance(exc, asyncio.CancelledError):
                raise
        finally:
            self._is_ended = True
            self._changed.set()

    async def only_batch(self, begins_s: float, ends_s: float) -> pa.RecordBatch | None:
        """Return the batch of a stream that has one; None if that is not known soon enough.

        Waits for the batch, and after it for the end, as long as given. The batch stays to be
        taken.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(begins_s):
                while not (self._batches or self._is_ended):
                    await self._next_change()
            async with asyncio.timeout(ends_s):
                while self.is_at_one_batch:
                    await self._next_change()
        return self._only

    @property
    def is_at_one_batch(self) -> bool:
        """True if there is one batch, and not yet another one or the end."""
        return len(self._batches) == 1 and not self._is_ended

    async def only_batch_unless(
        self, answered: asyncio.Future[None], ends_s: float
    ) -> pa.RecordBatch | None:
        """Return the batch of a stream that has one; None if a future is done before its end.

        Waits as long as given. The batch stays to be taken.
        """
        answered.add_done_callback(lambda _: self._changed.set())
        with suppress(TimeoutError):
            async with asyncio.timeout(ends_s):
                while self.is_at_one_batch and not answered.done():
                    await self._next_change()
        return self._only

    @property
    def _only(self) -> pa.RecordBatch | None:
        is_whole = self._is_ended and self._error is None
        return self._batches[0] if is_whole and len(self._batches) == 1 else None

    async def take_batches(self, most_rows: Callable[[], int]) -> list[pa.RecordBatch]:
        """Return the batches at hand, together about so many rows; none means the end.

        A batch with many more rows is cut into parts of one size.
        """
        while not self._batches:
            if self._is_ended:
                if self._error is not None:
                    raise self._error
                return []
            await self._next_change()
        room = most_rows()
        taken = [self._cut(self._batches.popleft(), room)]
        room -= taken[0].num_rows
        while self._batches and self._batches[0].num_rows <= room:
            taken.append(self._batches.popleft())
            room -= taken[-1].num_rows
        self._changed.set()
        return taken

    def _cut(self, batch: pa.RecordBatch, most_rows: int) -> pa.RecordBatch:
        """Return the first part of a batch, and leave the rest to be taken."""
        rows = part_rows(batch, most_rows)
        if rows == batch.num_rows:
            return batch
        self._batches.appendleft(batch.slice(rows))
        return batch.slice(0, rows)

    async def _next_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


@asynccontextmanager
async def reading_ahead(stream: BatchStream) -> AsyncIterator[AheadReader]:
    """Read a stream ahead; stop when the block ends."""
    reader = AheadReader()
    reading = tasks.begin(reader.read(stream), "read ahead")
    try:
        yield reader
    finally:
        reading.cancel()
        await asyncio.wait((reading,))
