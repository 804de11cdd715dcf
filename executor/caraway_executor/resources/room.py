"""Counts memory for the rows of tasks until they are in the object store, and for chunks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock

from caraway_core.errors import OutOfMemoryQueryError


@dataclass(slots=True)
class TaskMemory:
    """A memory budget shared by all tasks of an executor; None means no limit.

    The engine does not count rows that have left it, nor those of accelerated datasets. Without
    this budget, the kernel would kill a process whose stage makes too many rows, with all queries.
    """

    limit_bytes: int | None = None
    taken_bytes: int = field(default=0, init=False)
    reclaim: Callable[[], None] = field(default=lambda: None, init=False, repr=False)
    """Frees cached data; called by any thread when memory is short."""
    # Reentrant, because finalizers return bytes at any point.
    _lock: RLock = field(default_factory=RLock, init=False, repr=False)

    def has(self, size_bytes: int) -> bool:
        """Return whether this many more bytes fit."""
        return self.limit_bytes is None or self.taken_bytes + size_bytes <= self.limit_bytes

    def take_bytes(self, size_bytes: int) -> bool:
        """Count bytes as used; return whether they fit."""
        with self._lock:
            if not self.has(size_bytes):
                self.reclaim()
            fits = self.has(size_bytes)
            if fits:
                self.taken_bytes += size_bytes
            return fits

    def give(self, size_bytes: int) -> None:
        """Return bytes to the budget."""
        with self._lock:
            self.taken_bytes -= size_bytes

    @contextmanager
    def place(self) -> Iterator["MemoryGrant"]:
        """Return a context manager that returns all bytes of a task at its end."""
        place = MemoryGrant(self)
        try:
            yield place
        finally:
            self.give(place.taken_bytes)


@dataclass(slots=True)
class MemoryGrant:
    """The bytes that one task uses; they are returned when its block ends."""

    room: TaskMemory
    taken_bytes: int = 0

    def take_bytes(self, size_bytes: int) -> None:
        """Count rows that the task keeps.

        Raises:
            OutOfMemoryQueryError: they do not fit.
        """
        if not self.room.take_bytes(size_bytes):
            raise OutOfMemoryQueryError(
                f"a stage of the query needs more memory than its executor may use: the rows that "
                f"it passes on, with those of other queries, exceed "
                f"{(self.room.limit_bytes or 0) >> 20} MiB. "
                "Select fewer columns or rows, add executors, or give them more with --memory."
            )
        self.taken_bytes += size_bytes
