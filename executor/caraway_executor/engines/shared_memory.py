"""Memory that an engine process shares with the process that serves the API.

The engine writes large batches there once, in place of sending them over the socket, which copies
them twice. It owns the memory: it takes a place, says where the rows are, and gets the place back
when the other process has dropped them. Rows for which there is no place go over the socket, so
readers that keep their rows for long delay nobody.
"""

import asyncio
import fcntl
import mmap
import os
import weakref
from bisect import insort
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import NamedTuple

import pyarrow as pa

ROOM_BYTES = 64 * 1024 * 1024
"""The size for one engine process. The system provides only the pages that were used."""
_LARGEST_SHARE = 8
_PAGE_BYTES = mmap.PAGESIZE


class Place(NamedTuple):
    """Where rows are."""

    start: int
    size: int


def create(size_bytes: int = ROOM_BYTES) -> int:
    """Return the descriptor of new memory, whose size cannot change.

    Raises:
        OSError: the system provides none.
    """
    descriptor = os.memfd_create("caraway-rows", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size_bytes)
    # Access beyond the end of a file that became smaller would end the process that serves.
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


class HeldPlace:
    """A place that is taken; it becomes free with the last reference, unless it was sent."""

    def __init__(self, room: "WritableMemory", place: Place) -> None:
        self._room = room
        self.place = place
        self.is_sent = False

    @property
    def buffer(self) -> pa.Buffer:
        """The memory of the place, which can be written."""
        return self._room.buffer(self.place)

    def __del__(self) -> None:
        if not self.is_sent:
            self._room.dropped.append(self.place.start)


class WritableMemory:
    """The end of the engine process, which takes places and writes. Any thread may use it."""

    def __init__(self, descriptor: int) -> None:
        """Map the memory; a copy of the descriptor stays open with it."""
        self._size = os.fstat(descriptor).st_size
        mapped = mmap.mmap(descriptor, self._size)
        self._memory = memoryview(mapped)
        self._descriptor = os.dup(descriptor)
        weakref.finalize(self, os.close, self._descriptor)
        self._free = [Place(0, self._size)]
        self._taken: dict[int, int] = {}
        self._provided = 0
        self._lock = Lock()
        self.dropped: deque[int] = deque()
        """Places that were not sent. They end up here without the lock, because Python's garbage
        collector may drop them in the middle of any other call."""

    @property
    def taken_bytes(self) -> int:
        """The size of all places that are taken."""
        with self._lock:
            self._free_dropped()
            return sum(self._taken.values())

    def take_place(self, size_bytes: int) -> HeldPlace | None:
        """Take a place of at least this size; None if there is none, or it is too large a share."""
        size = -(-size_bytes // _PAGE_BYTES) * _PAGE_BYTES
        if not 0 < size <= self._size // _LARGEST_SHARE:
            return None
        with self._lock:
            self._free_dropped()
            # The first one that fits, so that pages are used again before others are touched.
            at = next((i for i, each in enumerate(self._free) if each.size >= size), None)
            if at is None:
                return None
            start, room = self._free[at]
            if not self._is_provided(start + size):
                return None
            self._free[at : at + 1] = [Place(start + size, room - size)] if room > size else []
            self._taken[start] = size
        return HeldPlace(self, Place(start, size))

    def give_back(self, start: int) -> None:
        """Make a place free again."""
        with self._lock:
            self._make_free(start)

    def buffer(self, place: Place) -> pa.Buffer:
        """Return the memory of a place."""
        # A slice of an Arrow buffer could not be written.
        return pa.py_buffer(self._memory[place.start : place.start + place.size])

    def _free_dropped(self) -> None:
        while self.dropped:
            self._make_free(self.dropped.popleft())

    def _make_free(self, start: int) -> None:
        place = Place(start, self._taken.pop(start))
        insort(self._free, place)
        at = self._free.index(place)
        for left in (at, at - 1):
            self._join(left)

    def _join(self, left: int) -> None:
        """Join a free place with the next one if they touch."""
        if 0 <= left < len(self._free) - 1:
            one, other = self._free[left : left + 2]
            if one.start + one.size == other.start:
                self._free[left : left + 2] = [Place(one.start, one.size + other.size)]

    def _is_provided(self, end: int) -> bool:
        """Have the system provide pages up to here; without memory a write would be fatal."""
        if end > self._provided:
            try:
                os.posix_fallocate(self._descriptor, self._provided, end - self._provided)
            except OSError:
                return False
            self._provided = end
        return True


class ReadLease:
    """Keeps the memory of one place mapped, and calls back with its last reference."""

    __slots__ = ("_ended", "_memory")

    def __init__(self, memory: pa.Buffer, ended: Callable[[], None]) -> None:
        self._memory = memory
        self._ended = ended

    def __del__(self) -> None:
        self._ended()


class ReadableMemory:
    """The end of the serving process, which reads in place and gives places back."""

    def __init__(self, descriptor: int) -> None:
        """Map the memory; the descriptor may be closed afterwards."""
        size = os.fstat(descriptor).st_size
        self._memory = pa.py_buffer(mmap.mmap(descriptor, size, prot=mmap.PROT_READ))
        self._loop = asyncio.get_running_loop()

    def view(self, place: Place, dropped: Callable[[int], None]) -> pa.Buffer:
        """Return the content of a place; `dropped` is called on the loop after its last use."""
        if place.start < 0 or place.size < 0 or place.start + place.size > self._memory.size:
            raise ValueError("the place is not in the shared memory")
        lease = ReadLease(self._memory, partial(self._post, partial(dropped, place.start)))
        return pa.foreign_buffer(self._memory.address + place.start, place.size, base=lease)

    def _post(self, call: Callable[[], None]) -> None:
        # The last reference may be dropped by any thread, even after the loop was closed.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call)
