"""Reads the rows of a fragment into tables, or converts them batch by batch."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import BatchStream, StreamTraits
from caraway_core.protocols.fleet import Split
from caraway_engine.rows import plain, splitting
from caraway_executor.resources.room import MemoryGrant

_CHUNK_BYTES = 64 * 1024 * 1024
_SHORT_BYTES = 64 * 1024


async def collect(
    stream: BatchStream, schema: pa.Schema, split: Split | None, place: MemoryGrant
) -> tuple[pa.Table, ...]:
    """Read a stream to its end into one table, or one per partition of the split.

    The tables have few large chunks, and types that serialize well.

    Raises:
        OutOfMemoryQueryError: they do not fit in the place.
    """
    by = split or Split(keys=(), count=1)
    empty = plain.plain_schema(schema).empty_table()
    parted: list[list[pa.Table]] = [[] for _ in range(by.count)]
    async for chunk in chunks(stream, schema):
        place.take_bytes(chunk.nbytes)
        for tables, table in zip(parted, await splitting.split(chunk, by), strict=True):
            tables.append(table)
    if by.extra:
        empty = empty.select(list(range(empty.num_columns - by.extra)))
    joined = (_done(splitting.joined, tables or [empty]) for tables in parted)
    return tuple([await each for each in joined])


async def chunks(
    stream: BatchStream, schema: pa.Schema, chunk_bytes: int = _CHUNK_BYTES
) -> AsyncIterator[pa.Table]:
    """Read a stream in compact tables of about this size."""
    target = plain.plain_schema(schema)
    waiting: list[pa.RecordBatch] = []
    size = 0
    async for batch in stream:
        waiting.append(batch)
        size += batch.nbytes
        if size >= chunk_bytes:
            yield await _done(plain.plain_table, waiting, target)
            waiting, size = [], 0
    if waiting:
        yield await _done(plain.plain_table, waiting, target)


async def _done(work: Callable[..., pa.Table], parts: Sequence[Any], *rest: object) -> pa.Table:
    """Join parts of rows: here if that takes no longer than to wake a thread."""
    if sum(part.nbytes for part in parts) <= _SHORT_BYTES:
        return work(parts, *rest)
    return await asyncio.to_thread(work, parts, *rest)


class PlainStream:
    """The rows of a fragment with the names and types of its task, which serialize well."""

    reads_only_catalog = False
    written: TableName | None = None

    def __init__(self, stream: BatchStream, schema: pa.Schema) -> None:
        self._stream = stream
        self.schema = plain.plain_schema(schema)
        self.traits = StreamTraits()

    @property
    def is_at_end(self) -> bool:
        """True if the end of the rows is already known."""
        return self._stream.is_at_end

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self._batches()

    async def _batches(self) -> AsyncIterator[pa.RecordBatch]:
        async for batch in self._stream:
            yield plain.plain_batch(batch, self.schema)

    async def aclose(self) -> None:
        """Close the underlying stream."""
        await self._stream.aclose()
