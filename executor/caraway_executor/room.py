"""Memory for the rows that tasks make, until they are in the object store."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from caraway_core.errors import OutOfMemoryQueryError


@dataclass(slots=True)
class Room:
    """Shared by all tasks of an executor; None is without limit.

    The engine does not count rows that have left it, so without this a stage that makes more than
    fits would have the kernel end the process, and every other query there with it.
    """

    limit_bytes: int | None = None
    taken_bytes: int = field(default=0, init=False)

    @contextmanager
    def place(self) -> Iterator["Place"]:
        place = Place(self)
        try:
            yield place
        finally:
            self.taken_bytes -= place.taken_bytes


@dataclass(slots=True)
class Place:
    """What one task takes, and gives back when its block ends."""

    room: Room
    taken_bytes: int = 0

    def take(self, size_bytes: int) -> None:
        """Count rows that are kept.

        Raises:
            OutOfMemoryQueryError: they do not fit beside what is there.
        """
        room = self.room
        if room.limit_bytes is not None and room.taken_bytes + size_bytes > room.limit_bytes:
            raise OutOfMemoryQueryError(
                f"a stage of the query needs more memory than its executor may use: the rows that "
                f"it passes on, with those of other queries, exceed {room.limit_bytes >> 20} MiB. "
                "Select fewer columns or rows, add executors, or give them more with --memory."
            )
        room.taken_bytes += size_bytes
        self.taken_bytes += size_bytes
