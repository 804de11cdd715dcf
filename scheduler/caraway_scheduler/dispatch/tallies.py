"""What the driver of distributed queries counts; the metrics page reads it at scrape."""

from collections import defaultdict

from caraway_core.durations import Durations, Labels
from caraway_core.ids import ExecutorId


class DispatchTallies:
    """Counts of one scheduler since it started."""

    def __init__(self) -> None:
        self.queue_depth = 0
        """Tasks that wait for an executor now."""
        self.planning_durations = Durations()
        self.stage_durations = Durations()
        self.assignments: dict[Labels, int] = defaultdict(int)

    def planned(self, duration_ms: float) -> None:
        self.planning_durations.add((), duration_ms)

    def stage_ended(self, kind: str, duration_ms: float) -> None:
        self.stage_durations.add((kind,), duration_ms)

    def assigned(self, executor_id: ExecutorId) -> None:
        """Count a task that was given to an executor."""
        self.assignments[(executor_id,)] += 1
