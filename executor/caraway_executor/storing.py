"""Answers that are stored where they are made; only word of their chunks goes on."""

import asyncio
from collections.abc import AsyncIterator

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.protocols import storing
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.results import ChunkInfo, ResultStore
from caraway_core.protocols.storing import StoredChunk, StoreOrder
from caraway_engine import plain
from caraway_executor.chunking import Chunk, Chunker

_WRITES = 3
"""Chunks on their way to the store at once, while the next rows are read."""
_Write = asyncio.Task[ChunkInfo]


class StoringStream:
    """Stores the rows of a stream, and yields word of each chunk in the order of the rows.

    What runs ahead of the reader is bounded by the writes that are under way.

    Raises:
        ResultTooLargeError: while it is read, when more is stored than the order allows.
        ResultStoreError: while it is read, when the store fails.
    """

    def __init__(self, rows: BatchStream, order: StoreOrder, store: ResultStore) -> None:
        self._answer = order.schema or rows.schema
        self.schema = storing.stored_schema(self._answer)
        self.reads_only_catalog: bool = rows.reads_only_catalog
        self.written: TableName | None = rows.written
        self._rows = rows
        self._order = order
        self._store = store
        self._writes: asyncio.Queue[_Write | BaseException | None] = asyncio.Queue(_WRITES - 1)
        self._under_way: set[asyncio.Task[ChunkInfo] | asyncio.Task[None]] = set()
        self._is_begun = self._is_closed = False
        self._stored_bytes = 0

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if self._is_closed:
            raise StopAsyncIteration
        if not self._is_begun:
            self._is_begun = True
            self._own(asyncio.create_task(self._store_all()))
        try:
            chunk = await self._next_chunk()
        except BaseException:
            await self.aclose()
            raise
        word = StoredChunk(self._order.task, self._order.attempt, chunk)
        return storing.pack([word], self.schema)

    async def aclose(self) -> None:
        """Stop the work behind the rows, and the writes; nothing of them runs on."""
        self._is_closed = True
        under_way = list(self._under_way)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await self._rows.aclose()

    async def _next_chunk(self) -> ChunkInfo:
        write = await self._writes.get()
        if write is None:
            raise StopAsyncIteration
        if isinstance(write, BaseException):
            raise write
        chunk = await write
        self._stored_bytes += chunk.size_bytes
        most = self._order.most_bytes
        if most is not None and self._stored_bytes > most:
            raise storing.too_large(self._stored_bytes, most)
        return chunk

    async def _store_all(self) -> None:
        chunker = Chunker(self._order)
        index = 0
        try:
            async for batch in self._rows:
                for piece in self._restored(batch):
                    for chunk in chunker.add(piece):
                        await self._begin(index, chunk)
                        index += 1
            for chunk in chunker.rest():
                await self._begin(index, chunk)
        except Exception as exc:
            await self._writes.put(exc)
        else:
            await self._writes.put(None)

    async def _begin(self, index: int, chunk: Chunk) -> None:
        writing = self._store.write_chunk(self._order.key, index, self._answer, chunk)
        write = asyncio.ensure_future(writing)
        self._own(write)
        await self._writes.put(write)

    def _restored(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        if not plain.has_views(batch.schema):
            return [plain.restored(batch, self._answer)]
        # Each slice of views would take along all of the text that it is a part of.
        compact = plain.plain_table([batch], plain.plain_schema(batch.schema))
        return [plain.restored(each, self._answer) for each in compact.to_batches()]

    def _own(self, task: asyncio.Task[ChunkInfo] | asyncio.Task[None]) -> None:
        self._under_way.add(task)
        task.add_done_callback(self._let_go)

    def _let_go(self, task: asyncio.Task[ChunkInfo] | asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # Whoever reads gets it in its turn; nobody may be reading any more.
