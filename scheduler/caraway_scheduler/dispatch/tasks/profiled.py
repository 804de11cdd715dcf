"""Reports the tasks of the last stage of a statement that is profiled."""

from collections.abc import Callable

import pyarrow as pa

from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.wrapped_streams import WrappedStream


class ReportedStream(WrappedStream):
    """Calls `on_end` with the rows and bytes of a stream once it was read to its end."""

    def __init__(self, stream: BatchStream, on_end: Callable[[int, int], None]) -> None:
        super().__init__(stream)
        self._on_end = on_end
        self._rows = self._size_bytes = 0

    @property
    def is_at_end(self) -> bool:
        """False: its reader has to see the end, because that is when it reports."""
        return False

    async def __anext__(self) -> pa.RecordBatch:
        try:
            batch = await anext(self._batches)
        except StopAsyncIteration:
            self._on_end(self._rows, self._size_bytes)
            raise
        self._rows += batch.num_rows
        self._size_bytes += batch.nbytes
        return batch
