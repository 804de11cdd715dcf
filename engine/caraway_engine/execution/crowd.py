"""Counts the statements that run at once, to decide how many partitions the next one gets."""

from collections.abc import Iterator
from contextlib import contextmanager


class Crowd:
    """The streams of an engine that compute a batch at this moment; safe to use from any thread.

    Partitions let one statement use several cores, at the cost of exchanging rows between them.
    Where other statements use the cores anyway, only the cost is left: TPC-H at scale 0.1 takes
    0.81 of the processor time in one partition.
    """

    def __init__(self, cores: int) -> None:
        """Take the number of statements that occupy all cores of the engine."""
        self._cores = cores
        # Single calls of a set need no lock.
        self._running: set[int] = set()

    @contextmanager
    def entered(self, stream: object) -> Iterator[None]:
        """Count a stream while a batch of it is computed."""
        self._running.add(id(stream))
        try:
            yield
        finally:
            self._running.discard(id(stream))

    @property
    def is_dense(self) -> bool:
        """Whether the streams that run occupy all cores."""
        return len(self._running) >= self._cores

    @property
    def share(self) -> float:
        """The share of the time of a stream in which it has a core, if all have an equal share."""
        return min(1.0, self._cores / max(1, len(self._running)))
