"""The counters of an executor, which the metrics page reads, even from another process."""

from dataclasses import dataclass, field

from caraway_core.process.durations import Durations


@dataclass(slots=True)
class ExchangeTally:
    """The rows and bytes that went through exchanges."""

    rows: int = 0
    size_bytes: int = 0

    def add(self, rows: int, size_bytes: int) -> None:
        """Add rows and bytes."""
        self.rows += rows
        self.size_bytes += size_bytes


@dataclass(slots=True)
class ExecutorTallies:
    """The counters of one executor since it started."""

    task_durations: Durations = field(default_factory=Durations)
    written: ExchangeTally = field(default_factory=ExchangeTally)
    read_local: ExchangeTally = field(default_factory=ExchangeTally)
    read_remote: ExchangeTally = field(default_factory=ExchangeTally)
    embedded: dict[str, int] = field(default_factory=dict)
    """The texts that each embedding model was called with."""
    answered: dict[str, int] = field(default_factory=dict)
    """The calls that each hosted model has answered."""
    models: tuple[str, ...] = ()
    """The hosted models that are ready."""

    def task_ended(self, duration_ms: float) -> None:
        """Count a finished task."""
        self.task_durations.add((), duration_ms)

    def wrote(self, rows: int, size_bytes: int) -> None:
        """Count rows written to exchanges."""
        self.written.add(rows, size_bytes)

    def read(self, rows: int, size_bytes: int, *, is_local: bool) -> None:
        """Count rows read from exchanges."""
        (self.read_local if is_local else self.read_remote).add(rows, size_bytes)
