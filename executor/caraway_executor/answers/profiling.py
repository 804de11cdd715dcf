"""Measures the work of a task while its rows are read."""

import time
from collections.abc import AsyncIterator

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import BatchStream, StreamTraits
from caraway_core.protocols.fleet import Task
from caraway_core.protocols.profiles import TaskProfile


class ProfiledStream:
    """The rows of a task that is profiled, which begins to run now."""

    def __init__(self, stream: BatchStream, waited_s: float, planned_s: float) -> None:
        """Take how long the task waited for a slot, and how long it was planned."""
        self._stream = stream
        self._batches = aiter(stream)
        self._waited_s = waited_s
        self._planned_s = planned_s
        self._began_s = time.monotonic()
        self._computed_s = 0.0
        self.schema: pa.Schema = stream.schema
        self.reads_only_catalog = stream.reads_only_catalog
        self.written: TableName | None = stream.written

    @property
    def traits(self) -> StreamTraits:
        """The traits of the stream that is read."""
        return self._stream.traits

    @property
    def is_at_end(self) -> bool:
        """True if the end of the rows is already known."""
        return self._stream.is_at_end

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        began_s = time.monotonic()
        try:
            return await anext(self._batches)
        finally:
            self._computed_s += time.monotonic() - began_s

    def profile(self) -> TaskProfile:
        """Return where the time went until now."""
        engine = self.traits.profile
        return TaskProfile(
            self._waited_s * 1000,
            self._planned_s * 1000,
            (time.monotonic() - self._began_s) * 1000,
            self._computed_s * 1000,
            engine().operators if engine is not None else (),
        )

    async def aclose(self) -> None:
        """Cancel the work."""
        await self._stream.aclose()


def profiled_stream(
    task: Task, stream: BatchStream, asked_s: float, began_s: float
) -> ProfiledStream | None:
    """Return a stream that measures the work of a task whose plan is there, if it is profiled."""
    if not task.is_profiled:
        return None
    return ProfiledStream(stream, began_s - asked_s, time.monotonic() - began_s)
