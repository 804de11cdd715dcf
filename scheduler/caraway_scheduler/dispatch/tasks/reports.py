"""Reports of work on executors: what it returned, how it ended, and its bytes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from caraway_core.ids import ExecutorId, QueryId
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Input
from caraway_core.protocols.profiles import TaskProfile
from caraway_core.protocols.wrapped_streams import WrappedStream
from caraway_scheduler.dispatch.tasks.quarantine import OnLoss
from caraway_scheduler.dispatch.tasks.tallies import DispatchTallies


class OnRead(Protocol):
    """Hears once how many rows and bytes of a stream were read."""

    def __call__(self, rows: int, size_bytes: int, /) -> None: ...


@dataclass(frozen=True, slots=True)
class FinishedTask:
    """A completed piece of work on an executor."""

    query_id: QueryId
    stage: str
    note: str
    number: int
    executor_id: ExecutorId | None
    """None means the scheduler itself."""
    rows: int
    size_bytes: int
    elapsed_ms: float
    ended_ns: int
    profile: TaskProfile | None = None
    """Of a task of a statement that is profiled; its call took `called_ms`."""
    called_ms: float = 0.0
    received_bytes: int = 0
    """The size of its inputs that other executors made."""


@dataclass(frozen=True, slots=True)
class WorkReports:
    """The counts of tasks, and listeners for completed work and for losses.

    `on_ran` hears of completed work, `on_lost` of an executor that was lost and why, and `on_loss`
    of a statement that may have ended its executor.
    """

    tallies: DispatchTallies
    on_ran: Callable[[FinishedTask], None]
    on_lost: Callable[[ExecutorId, str], None]
    on_loss: OnLoss


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
