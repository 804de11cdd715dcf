"""Counters of distributed queries, which the metrics page reads at scrape."""

from collections import defaultdict

from caraway_core.ids import ExecutorId
from caraway_core.process.durations import Durations, Labels


class DispatchTallies:
    """Dispatch counters of one scheduler since its start."""

    def __init__(self) -> None:
        self.queue_depth = 0
        """How many tasks wait for an executor now."""
        self.planning_durations = Durations()
        self.stage_durations = Durations()
        self.assignments: dict[Labels, int] = defaultdict(int)

    def planned(self, duration_ms: float) -> None:
        """Count the planning of a query."""
        self.planning_durations.add((), duration_ms)

    def stage_ended(self, kind: str, duration_ms: float) -> None:
        """Count a completed stage."""
        self.stage_durations.add((kind,), duration_ms)

    def assigned(self, executor_id: ExecutorId) -> None:
        """Count a task that was assigned to an executor."""
        self.assignments[(executor_id,)] += 1
