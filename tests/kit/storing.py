"""Stores results in a folder, and reads them back."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.storing import StoredChunk, StoreOrder, answer_schema, in_order, unpack
from caraway_core.tables import ResultPlace
from caraway_plugins.stores.folder import FolderResultStore
from tests.kit.stream_double import StreamDouble


class Rows(StreamDouble):
    """A stream of given batches, which optionally fails at its end."""

    reads_only_catalog = False
    written: TableName | None = None

    def __init__(
        self,
        batches: Sequence[pa.RecordBatch],
        schema: pa.Schema | None = None,
        error: Exception | None = None,
    ) -> None:
        self.schema = schema or batches[0].schema
        self.given = 0
        self.is_closed = False
        self._batches = iter(batches)
        self._error = error

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        for batch in self._batches:
            self.given += 1
            return batch
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.is_closed = True


def order(folder: Path, key: str = "answer", **options: Any) -> StoreOrder:
    return StoreOrder(ResultPlace("file", str(folder)), key, **options)


async def words(stream: BatchStream) -> list[StoredChunk]:
    """Read the descriptions of all chunks, and close the stream."""
    try:
        found = [each async for batch in stream for each in unpack(batch)]
        # A slow stream also says how many rows it has read.
        return [each for each in found if each.is_chunk or not each.chunk.index]
    finally:
        await stream.aclose()


async def read_chunks(
    folder: Path, chunks: Sequence[ChunkInfo], schema: pa.Schema, key: str = "answer"
) -> pa.Table:
    store = FolderResultStore(folder)
    batches = [batch for each in chunks async for batch in store.read_chunk(key, each)]
    return pa.Table.from_batches(batches, schema=schema)


async def read_back(folder: Path, stream: BatchStream, key: str = "answer") -> pa.Table:
    """Read the descriptions of all chunks, and then the stored rows."""
    schema = answer_schema(stream.schema)
    return await read_chunks(folder, in_order(await words(stream)), schema, key)
