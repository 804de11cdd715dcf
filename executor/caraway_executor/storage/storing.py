"""Stores results where they are made, and reports only their chunks."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol, runtime_checkable

import pyarrow as pa

from caraway_core.concurrency import tasks
from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.protocols import storing
from caraway_core.protocols.dispatch import BatchStream, StreamTraits
from caraway_core.protocols.results import ChunkInfo, ChunkWriter, ResultStore
from caraway_core.protocols.storing import StoredChunk, StoreOrder
from caraway_engine.rows import plain
from caraway_executor.storage.chunking import Chunk, Chunker, Gathering, PartitionChunker

_PROGRESS_S = 1.0
"""The interval in which the rows that were read are reported while no chunk is complete."""
_WRITES = 3
"""The most chunks written at once, while the next rows are read."""
Keep = Callable[[ChunkInfo, Chunk], None]
_Write = asyncio.Task[ChunkInfo]


@runtime_checkable
class CachingStore(Protocol):
    """A store that also caches what it writes in memory, unless asked not to."""

    def past_cache(self) -> ResultStore: ...


class StoringStream:
    """Stores the rows of a stream, and yields the chunks in row order.

    If the order partitions the rows, they are in order within each partition. The number of
    concurrent writes limits how far the stream runs ahead of its reader.

    Raises:
        ResultTooLargeError: while it is read, if more is stored than the order allows.
        ResultStoreError: while it is read, if the store fails.
    """

    def __init__(
        self,
        rows: BatchStream,
        order: StoreOrder,
        store: ChunkWriter,
        schema: pa.Schema | None = None,
        keep: Keep | None = None,
        home: str = "",
    ) -> None:
        """Take the rows; `schema`, if given, renames and casts their columns by position.

        Chunks are passed to `keep`, and the reported chunks name `home`.
        """
        self._full = plain.with_lists(order.schema or rows.schema)
        self._answer = storing.kept_schema(self._full, order.cut)
        self.schema = storing.stored_schema(self._answer)
        self.reads_only_catalog: bool = rows.reads_only_catalog
        self.written: TableName | None = rows.written
        self._rows = rows
        self._given = schema or rows.schema
        self._is_compact = schema is None and keep is None and not plain.has_views(rows.schema)
        self._keep = keep
        # Kept chunks use memory from the system allocator: see `stores.chunks.allocated`.
        self._pool = pa.system_memory_pool() if keep else None
        self._home = home if keep else ""
        self._order = order
        # Chunks that are kept here need not be cached by the store, too.
        self._store = store.past_cache() if keep and isinstance(store, CachingStore) else store
        self._writes: asyncio.Queue[_Write | BaseException | None] = asyncio.Queue(_WRITES - 1)
        self._under_way: set[asyncio.Task[object]] = set()
        self._is_begun = self._is_closed = False
        self._stored_bytes = 0
        self._read_rows = self._reported_rows = 0
        self._next: asyncio.Task[ChunkInfo | None] | None = None
        self.traits = StreamTraits()

    @property
    def is_at_end(self) -> bool:
        """True if the stream is closed."""
        return self._is_closed

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if self._is_closed:
            raise StopAsyncIteration
        if not self._is_begun:
            self._is_begun = True
            self._own(tasks.begin(self._store_all()))
        try:
            record = await self._next_record()
        except BaseException:
            await self.aclose()
            raise
        if record is None:
            raise StopAsyncIteration
        return storing.pack([record], self.schema)

    async def aclose(self) -> None:
        """Cancel the source of the rows and all writes, and wait for them."""
        self._is_closed = True
        under_way = list(self._under_way)
        for task in under_way:
            task.cancel()
        try:
            # Not `gather`, whose cancellation would cancel them again.
            if under_way:
                await asyncio.wait(under_way)
        finally:
            await self._rows.aclose()

    async def _next_record(self) -> StoredChunk | None:
        """Return the next chunk, or how many rows were read if it takes long; None at the end."""
        task, attempt = self._order.task, self._order.attempt
        while True:
            if self._next is None:
                self._next = tasks.begin(self._next_chunk())
                self._next.add_done_callback(tasks.retrieve)
                self._own(self._next)
            done, _ = await asyncio.wait((self._next,), timeout=_PROGRESS_S)
            if done:
                found, self._next = self._next, None
                chunk = found.result()
                return None if chunk is None else StoredChunk(task, attempt, chunk)
            if self._read_rows != self._reported_rows:
                self._reported_rows = self._read_rows
                return storing.read_so_far(task, attempt, self._read_rows)

    async def _next_chunk(self) -> ChunkInfo | None:
        write = await self._writes.get()
        if write is None:
            return None
        if isinstance(write, BaseException):
            raise write
        chunk = await write
        self._stored_bytes += chunk.size_bytes
        most = self._order.most_bytes
        if most is not None and self._stored_bytes > most:
            raise storing.too_large(self._stored_bytes, most)
        return chunk

    async def _store_all(self) -> None:
        index = 0
        try:
            chunks = self._parted() if self._order.cut.terms else self._uncut()
            async with aclosing(chunks):
                async for partition, chunk in chunks:
                    await self._begin(index, partition, chunk)
                    index += 1
        except asyncio.CancelledError:
            if tasks.is_cancelled():
                raise
            await self._writes.put(ExecutionError("storing the rows was interrupted; try again"))
        except BaseException as exc:
            if tasks.ends(exc):
                raise
            await self._writes.put(exc)
        else:
            await self._writes.put(None)

    async def _uncut(self) -> AsyncGenerator[tuple[str, Chunk], None]:
        chunker = Chunker(self._order)
        async for piece in self._compact():
            for chunk in chunker.add(piece):
                yield "", chunk
        for chunk in chunker.rest():
            yield "", chunk

    async def _compact(self) -> AsyncGenerator[pa.RecordBatch, None]:
        """Yield the rows with the result's types, without sharing memory with other rows."""
        if self._is_compact:
            async for batch in self._rows:
                self._read_rows += batch.num_rows
                yield plain.restored(batch, self._answer)
            return
        # Each slice would keep all of its original batch, as views keep their text. One large batch
        # is cheaper to copy and scan than many small ones, and a thread keeps the event loop free.
        gathering = Gathering(self._order)
        async for batch in self._rows:
            self._read_rows += batch.num_rows
            if gathered := gathering.add(batch):
                for each in await asyncio.to_thread(self._restored, gathered):
                    yield each
        if gathered := gathering.rest():
            for each in await asyncio.to_thread(self._restored, gathered):
                yield each

    async def _parted(self) -> AsyncGenerator[tuple[str, Chunk], None]:
        chunker = PartitionChunker(self._order, self._full, pool=self._pool)
        async for batch in self._rows:
            self._read_rows += batch.num_rows
            if chunker.gather(batch):
                # Partitioning takes time; a thread keeps the event loop free.
                for partition, chunk in await asyncio.to_thread(chunker.part):
                    yield partition, self._named(chunk)
        for partition, chunk in await asyncio.to_thread(chunker.rest):
            yield partition, self._named(chunk)

    def _named(self, chunk: Chunk) -> Chunk:
        return [plain.restored(each, self._answer) for each in chunk]

    async def _begin(self, index: int, partition: str, chunk: Chunk) -> None:
        write = tasks.begin(self._write(index, partition, chunk))
        self._own(write)
        await self._writes.put(write)

    async def _write(self, index: int, partition: str, chunk: Chunk) -> ChunkInfo:
        written = await self._store.write_chunk(self._order.key, index, self._answer, chunk)
        written = replace(written, partition=partition, home=self._home)
        if self._keep is not None:
            self._keep(written, chunk)
        return written

    def _restored(self, batches: Chunk) -> Chunk:
        compact = plain.plain_table(batches, plain.plain_schema(self._given), self._pool)
        return [plain.restored(each, self._answer) for each in compact.to_batches()]

    def _own(self, task: asyncio.Task[object]) -> None:
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
