"""Where work on executors reports what became of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from caraway_core.ids import ExecutorId, QueryId
from caraway_core.protocols.profiles import TaskProfile
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
