"""Results that are read page by page, and closed when the next page is not read."""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.concurrency import tasks as background
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import QueryCancelledError, ShuttingDownError
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import AnswerPage

logger = logging.getLogger(__name__)
_PAGE_BYTES = 4 * 1024 * 1024
_PAGE_S = 1.0
_FORGOTTEN_S = 300.0


@dataclass(slots=True)
class _Cursor:
    call: str
    origin: str
    stream: BatchStream
    batches: AsyncIterator[pa.RecordBatch]
    touched_s: float
    reading: asyncio.Task[AnswerPage] | None = None
    coming: asyncio.Task[pa.RecordBatch | None] | None = None
    """The pending next batch, which may outlast the page that requested it; None is the end."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Cursors:
    """The open results. At most one batch is read ahead of the requested page.

    A page ends at a number of bytes, or after a time if it has rows. So slow rows reach their
    reader early.
    """

    def __init__(
        self,
        clock: SecondsClock,
        page_bytes: int = _PAGE_BYTES,
        page_s: float = _PAGE_S,
    ) -> None:
        self._clock = clock
        self._page_bytes = page_bytes
        self._page_s = page_s
        self._open: dict[str, _Cursor] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def origins(self) -> frozenset[str]:
        """The schedulers that read the open results."""
        return frozenset(cursor.origin for cursor in self._open.values())

    async def open(self, call: str, origin: str, stream: BatchStream) -> AnswerPage:
        """Read the first page; the result stays open if there are more."""
        name = uuid.uuid4().hex
        self._open[name] = _Cursor(call, origin, stream, aiter(stream), self._clock())
        return await self.next(name)

    async def next(self, name: str) -> AnswerPage:
        """Read the next page.

        Raises:
            QueryError: the statement failed, or was cancelled.
            ShuttingDownError: there is no open result of this name.
        """
        cursor = self._open.get(name)
        if cursor is None:
            raise ShuttingDownError(
                "the rest of the result was dropped because nobody read it for "
                f"{_FORGOTTEN_S:g} s, or the executor restarted; run the statement again"
            )
        cursor.touched_s = self._clock()
        cursor.reading = background.begin(self._read(name, cursor))
        try:
            page = await cursor.reading
        except asyncio.CancelledError:
            await self.close(name)
            if cursor.reading.cancelled() and not background.is_cancelled():
                raise QueryCancelledError("the query was cancelled") from None
            raise
        except BaseException:
            await self.close(name)
            raise
        cursor.reading = None
        cursor.touched_s = self._clock()
        if page.is_last:
            await self.close(name)
        return page

    async def _read(self, name: str, cursor: _Cursor) -> AnswerPage:
        batches: list[pa.RecordBatch] = []
        size = 0
        until_s = self._clock() + self._page_s
        async with cursor.lock:
            while size < self._page_bytes:
                left_s = max(0.0, until_s - self._clock()) if batches else None
                if left_s == 0.0 or not await _has_come(cursor, left_s):
                    break
                batch = _taken(cursor)
                if batch is None:
                    profile = cursor.stream.traits.profile
                    return AnswerPage(
                        name,
                        tuple(batches),
                        is_last=True,
                        profile=profile() if profile is not None else None,
                    )
                if batch.num_rows:
                    batches.append(batch)
                    size += batch.nbytes
        return AnswerPage(name, tuple(batches), is_last=False)

    async def close(self, name: str) -> None:
        """Cancel the result at any point; does nothing if it is not open."""
        cursor = self._open.pop(name, None)
        if cursor is None:
            return
        if cursor.reading is not None:
            cursor.reading.cancel()
        try:
            if cursor.coming is not None:
                cursor.coming.cancel()
                await asyncio.wait((cursor.coming,))
        finally:
            # Also if this is cancelled while the batch ends: nobody else closes the stream.
            await cursor.stream.aclose()

    async def close_call(self, call: str) -> None:
        """Cancel all results of a call."""
        await self._close_all([name for name, each in self._open.items() if each.call == call])

    async def close_forgotten(self) -> None:
        """Close the results that were not read for long, unless a page is being read."""
        oldest_s = self._clock() - _FORGOTTEN_S
        for name, cursor in list(self._open.items()):
            if cursor.reading is None and cursor.touched_s < oldest_s:
                try:
                    await self.close(name)
                except Exception:
                    # The heartbeat asks for this, and has to be answered.
                    logger.exception("a forgotten result could not be closed")

    async def aclose(self) -> None:
        """Cancel all results."""
        await self._close_all(list(self._open))

    async def _close_all(self, names: Sequence[str]) -> None:
        # Each one, also after another one failed or if this is cancelled.
        async with AsyncExitStack() as closing:
            for name in names:
                closing.push_async_callback(self.close, name)


async def _has_come(cursor: _Cursor, wait_s: float | None) -> bool:
    """Request the next batch and wait for it for a limited time; the request stays pending."""
    if cursor.coming is None:
        cursor.coming = background.begin(_next(cursor.batches))
    done, _ = await asyncio.wait((cursor.coming,), timeout=wait_s)
    return bool(done)


def _taken(cursor: _Cursor) -> pa.RecordBatch | None:
    assert cursor.coming is not None
    coming, cursor.coming = cursor.coming, None
    return coming.result()


async def _next(batches: AsyncIterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return await anext(batches, None)
