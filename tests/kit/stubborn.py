"""A stream whose clean-up takes until a test lets it end."""

import asyncio
from collections.abc import AsyncIterator

import pyarrow as pa

from caraway_core.ids import TableName
from tests.kit.stream_double import StreamDouble


class StubbornRows(StreamDouble):
    """Gives one batch, then waits; when it is cancelled, it cleans up until `may_end` is set."""

    reads_only_catalog = False
    written: TableName | None = None

    def __init__(self, batch: pa.RecordBatch, error: Exception | None = None) -> None:
        self.schema = batch.schema
        self.cleans_up = asyncio.Event()
        self.may_end = asyncio.Event()
        self.is_closed = False
        self._batch: pa.RecordBatch | None = batch
        self._error = error

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if self._batch is not None:
            batch, self._batch = self._batch, None
            return batch
        try:
            await asyncio.Event().wait()
        finally:
            self.cleans_up.set()
            await self.may_end.wait()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.is_closed = True
        if self._error is not None:
            raise self._error


async def cancel_in_clean_up(closing: "asyncio.Task[None]", rows: StubbornRows) -> None:
    """Cancel a task while it waits for the clean-up of rows."""
    await asyncio.wait_for(rows.cleans_up.wait(), 60)
    closing.cancel()
    await asyncio.wait((closing,), timeout=60)
    assert closing.cancelled()
