"""Reports the tasks of the last stage of a statement that is profiled."""

from collections.abc import AsyncIterator, Callable

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import BatchStream, StreamTraits


class ReportedStream:
    """Calls `on_end` with the rows and bytes of a stream once it was read to its end."""

    def __init__(self, stream: BatchStream, on_end: Callable[[int, int], None]) -> None:
        self._stream = stream
        self._batches = aiter(stream)
        self._on_end = on_end
        self._rows = self._size_bytes = 0
        self.schema: pa.Schema = stream.schema
        self.reads_only_catalog = stream.reads_only_catalog
        self.written: TableName | None = stream.written

    @property
    def traits(self) -> StreamTraits:
        """The traits of the stream that is read."""
        return self._stream.traits

    @property
    def is_at_end(self) -> bool:
        """False: whoever reads it has to see the end, because that is when it reports."""
        return False

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        try:
            batch = await anext(self._batches)
        except StopAsyncIteration:
            self._on_end(self._rows, self._size_bytes)
            raise
        self._rows += batch.num_rows
        self._size_bytes += batch.nbytes
        return batch

    async def aclose(self) -> None:
        """Cancel the work."""
        await self._stream.aclose()
