"""Measures the work of a task while its rows are read."""

import time

import pyarrow as pa

from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Task
from caraway_core.protocols.profiles import TaskProfile
from caraway_core.protocols.wrapped_streams import WrappedStream


class ProfiledStream(WrappedStream):
    """The rows of a task that is profiled, which begins to run now."""

    def __init__(self, stream: BatchStream, waited_s: float, planned_s: float) -> None:
        """Take how long the task waited for a slot, and how long it was planned."""
        super().__init__(stream)
        self._waited_s = waited_s
        self._planned_s = planned_s
        self._began_s = time.monotonic()
        self._computed_s = 0.0

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


def profiled_stream(
    task: Task, stream: BatchStream, asked_s: float, began_s: float
) -> ProfiledStream | None:
    """Return a stream that measures the work of a task whose plan is there, if it is profiled."""
    if not task.is_profiled:
        return None
    return ProfiledStream(stream, began_s - asked_s, time.monotonic() - began_s)
