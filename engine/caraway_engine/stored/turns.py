"""A lock for work in slices: who asked first has it next, and not who gave it away just now."""

from collections import deque
from threading import Lock


class FairLock:
    """As a lock of Python, but in the order in which it was asked for."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._is_taken = False
        self._waiting: deque[Lock] = deque()

    def acquire(self, *, blocking: bool = True) -> bool:
        """Wait for a turn, or say at once whether there is one."""
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
        """Hand it to who waits longest."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_taken = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
