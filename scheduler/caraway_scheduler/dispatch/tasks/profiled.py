"""Counts the bytes of tasks, and reports those of the last stage of a profiled statement."""

from collections.abc import Sequence

import pyarrow as pa

from caraway_core.ids import ExecutorId
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Input
from caraway_core.protocols.wrapped_streams import WrappedStream
from caraway_scheduler.dispatch.tasks.reports import OnRead


class ReportedStream(WrappedStream):
    """Calls `on_end` with the rows and bytes of a stream once it was read to its end."""

    def __init__(self, stream: BatchStream, on_end: OnRead) -> None:
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


def bytes_of(inputs: Sequence[Input], but_of: ExecutorId | None = None) -> int:
    """Return the bytes of inputs, without those of one executor."""
    parts = (part for each in inputs for part in each.parts)
    return sum(part.size_bytes for part in parts if part.executor_id != but_of)
