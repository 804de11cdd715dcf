"""Tracks the database statements that the scans of a plan run, so that they end with it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from threading import Lock

from caraway_core.protocols.remote import RemoteRows
from caraway_core.work import SourceQuery

_current: ContextVar["OpenedReads | None"] = ContextVar("caraway-opened", default=None)


class OpenedReads:
    """A set of reads in progress that can all be closed at once.

    `planned` are the statements of the scans in the plan, without repetition. `limit` is the number
    of rows that the only scan of the plan has to return; None: all of them.
    """

    def __init__(self) -> None:
        self.planned: list[SourceQuery] = []
        self.limit: int | None = None
        self._rows: list[RemoteRows] = []
        self._is_closed = False
        self._lock = Lock()

    def plan(self, query: SourceQuery) -> None:
        """Note the statement that a scan of the plan will send."""
        if query not in self.planned:
            self.planned.append(query)

    def add(self, rows: RemoteRows) -> bool:
        """Add a read that is about to start. False means that it must not start."""
        with self._lock:
            if not self._is_closed:
                self._rows.append(rows)
            return not self._is_closed

    def close(self) -> None:
        """Cancel all statements, also if one cannot be, and prevent new ones. Blocks."""
        with self._lock:
            self._is_closed = True
            rows, self._rows = self._rows, []
        with ExitStack() as every:
            for each in rows:
                every.callback(each.close)


@contextmanager
def noted(opened: OpenedReads) -> Iterator[None]:
    """Record the reads of plans that are started inside this context.

    The engine asks a dataset for its fragments in the thread that starts the plan.
    """
    token = _current.set(opened)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> OpenedReads:
    """Return where scans of the plan that is being started record their reads."""
    return _current.get() or OpenedReads()
