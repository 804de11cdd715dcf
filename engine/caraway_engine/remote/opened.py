"""Statements that the scans of one plan have under way, so that they end with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from caraway_core.protocols.remote import RemoteRows

_current: ContextVar["OpenedReads | None"] = ContextVar("caraway-opened", default=None)


class OpenedReads:
    """Rows that are read, of which all are closed at once."""

    def __init__(self) -> None:
        self._rows: list[RemoteRows] = []
        self._is_closed = False
        self._lock = Lock()

    def add(self, rows: RemoteRows) -> bool:
        """Take note of rows that are about to be read; False: they must not be."""
        with self._lock:
            if not self._is_closed:
                self._rows.append(rows)
            return not self._is_closed

    def close(self) -> None:
        """Stop the statements, and let no other one begin. Blocks."""
        with self._lock:
            self._is_closed = True
            rows, self._rows = self._rows, []
        for each in rows:
            each.close()


@contextmanager
def noted(opened: OpenedReads) -> Iterator[None]:
    """Have the scans of a plan that is made meanwhile note what they read.

    The engine asks a dataset for its parts in the thread that begins the plan.
    """
    token = _current.set(opened)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> OpenedReads:
    """Return where scans of the plan that is made now note what they read."""
    return _current.get() or OpenedReads()
