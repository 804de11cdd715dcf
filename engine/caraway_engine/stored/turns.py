"""A fair lock for work in slices: waiting threads get it in the order of their requests."""

from collections import deque
from threading import Lock


class FairLock:
    """A lock like `threading.Lock`, but first in, first out."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._is_taken = False
        self._waiting: deque[Lock] = deque()

    def acquire(self, *, blocking: bool = True) -> bool:
        """Wait for the lock; if not `blocking`, return at once whether it was free."""
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return True
            if not blocking:
                return False
            mine = Lock()
            mine.acquire()
            self._waiting.append(mine)
        mine.acquire()
        return True

    def release(self) -> None:
        """Pass the lock to the thread that has waited longest."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_taken = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
