"""What an executor counts; its metrics page reads it, also in another process."""

from dataclasses import dataclass, field

from caraway_core.durations import Durations


@dataclass(slots=True)
class Moved:
    """Rows that went through exchanges, and their size."""

    rows: int = 0
    size_bytes: int = 0

    def add(self, rows: int, size_bytes: int) -> None:
        self.rows += rows
        self.size_bytes += size_bytes


@dataclass(slots=True)
class ExecutorTallies:
    """Counts of one executor since it started."""

    task_durations: Durations = field(default_factory=Durations)
    written: Moved = field(default_factory=Moved)
    read_local: Moved = field(default_factory=Moved)
    read_remote: Moved = field(default_factory=Moved)

    def task_ended(self, duration_ms: float) -> None:
        self.task_durations.add((), duration_ms)

    def wrote(self, rows: int, size_bytes: int) -> None:
        self.written.add(rows, size_bytes)

    def read(self, rows: int, size_bytes: int, *, is_local: bool) -> None:
        (self.read_local if is_local else self.read_remote).add(rows, size_bytes)
