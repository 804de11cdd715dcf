"""Memory for the rows that tasks make, until they are in the object store, and for chunks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock

from caraway_core.errors import OutOfMemoryQueryError


@dataclass(slots=True)
class TaskMemory:
    """Shared by all tasks of an executor; None is without limit.

    The engine does not count rows that have left it, nor those of accelerated datasets, so
    without this a stage that makes more than fits would have the kernel end the process, and
    every other query there with it.
    """

    limit_bytes: int | None = None
    taken_bytes: int = field(default=0, init=False)
    reclaim: Callable[[], None] = field(default=lambda: None, init=False, repr=False)
    """Lets go of what is only kept in case; called by any thread when there is no room."""
    # What is given back when an object goes may come in the middle of anything.
    _lock: RLock = field(default_factory=RLock, init=False, repr=False)

    def has(self, size_bytes: int) -> bool:
        return self.limit_bytes is None or self.taken_bytes + size_bytes <= self.limit_bytes

    def take(self, size_bytes: int) -> bool:
        """Count bytes that are kept; returns whether they fit beside what is there."""
        with self._lock:
            if not self.has(size_bytes):
                self.reclaim()
            fits = self.has(size_bytes)
            if fits:
                self.taken_bytes += size_bytes
            return fits

    def give(self, size_bytes: int) -> None:
        with self._lock:
            self.taken_bytes -= size_bytes

    @contextmanager
    def place(self) -> Iterator["MemoryGrant"]:
        place = MemoryGrant(self)
        try:
            yield place
        finally:
            self.give(place.taken_bytes)


@dataclass(slots=True)
class MemoryGrant:
    """What one task takes, and gives back when its block ends."""

    room: TaskMemory
    taken_bytes: int = 0

    def take(self, size_bytes: int) -> None:
        """Count rows that are kept.

        Raises:
            OutOfMemoryQueryError: they do not fit beside what is there.
        """
        if not self.room.take(size_bytes):
            raise OutOfMemoryQueryError(
                f"a stage of the query needs more memory than its executor may use: the rows that "
                f"it passes on, with those of other queries, exceed "
                f"{(self.room.limit_bytes or 0) >> 20} MiB. "
                "Select fewer columns or rows, add executors, or give them more with --memory."
            )
        self.taken_bytes += size_bytes
