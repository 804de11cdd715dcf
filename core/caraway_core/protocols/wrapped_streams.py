"""Streams that read another stream of batches."""

from collections.abc import AsyncIterator

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import BatchStream, StreamTraits


class WrappedStream:
    """A stream that passes on another one; subclasses override what they change."""

    def __init__(self, stream: BatchStream) -> None:
        self._stream = stream
        self._batches = aiter(stream)
        self.schema: pa.Schema = stream.schema
        self.reads_only_catalog = stream.reads_only_catalog
        self.written: TableName | None = stream.written

    @property
    def traits(self) -> StreamTraits:
        """The traits of the stream that is wrapped."""
        return self._stream.traits

    @property
    def is_at_end(self) -> bool:
        """True if the end of the stream is already known."""
        return self._stream.is_at_end

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        return await anext(self._batches)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()
