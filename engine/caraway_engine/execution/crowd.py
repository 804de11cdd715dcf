"""Counts the statements that run at once, to decide how the next one is started."""

from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet


class Crowd:
    """The streams of an engine that run at this moment; safe to use from any thread.

    Partitions let one statement use several cores, at the cost of exchanging rows between them.
    Where other statements use the cores anyway, only the cost is left: TPC-H at scale 0.1 takes
    0.81 of the processor time in one partition.
    """

    def __init__(self, cores: int) -> None:
        """Take the number of statements that occupy all cores of the engine."""
        self._cores = cores
        # Single calls of a set need no lock.
        self._running: set[int] = set()
        self._waiting: WeakSet[object] = WeakSet()

    def note_waiting(self, stream: object) -> None:
        """Count a stream that waits for a database or a model, until it ends."""
        self._waiting.add(stream)

    def end_waiting(self, stream: object) -> None:
        """Stop counting a stream for which threads of the engine waited."""
        self._waiting.discard(stream)

    @property
    def is_waiting(self) -> bool:
        """True while threads of the engine may wait for a database or a model.

        Starting a statement then waits for them, too. It must not keep the event loop from passing
        on what they wait for.
        """
        return len(self._waiting) > 0

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
        """True if the streams that run occupy all cores."""
        return len(self._running) >= self._cores

    @property
    def share(self) -> float:
        """The share of the time of a stream in which it has a core, if all have an equal share."""
        return min(1.0, self._cores / max(1, len(self._running)))
