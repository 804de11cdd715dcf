"""The causes of engine process failures, and their errors for the affected statements."""

import os
import signal
from enum import Enum

from caraway_core import suspects
from caraway_core.errors import (
    CarawayError,
    ExecutionError,
    OutOfMemoryQueryError,
    QueryError,
    ShuttingDownError,
    UnavailableError,
)


class Cause(Enum):
    """Why an engine process ended."""

    MEMORY = "memory"
    """It exceeded its memory ceiling."""
    HUNG = "hung"
    """It did not stop cancelled work, or did not respond."""
    CRASH = "crash"
    """It ended by itself: a stack overflow, an abort or a failed allocation."""
    KILLED = "killed"
    """The system or something external killed it."""
    CLOSED = "closed"
    """The runtime is shutting down, or another engine process replaced it."""

    @classmethod
    def from_status(cls, status: int) -> "Cause":
        """Return the cause for a wait status."""
        is_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        return cls.KILLED if is_killed else cls.CRASH

    @property
    def blamed(self) -> suspects.Cause | None:
        """The suspicion against statements that ran there."""
        return _BLAMED.get(self)


_BLAMED: dict[Cause, suspects.Cause] = {
    Cause.MEMORY: "memory",
    Cause.HUNG: "hung",
    Cause.CRASH: "crash",
    # Without another cause, the system killed it for using the most memory.
    Cause.KILLED: "memory",
}


class SilentError(UnavailableError):
    """A process does not respond, maybe because of this statement, which may be retried alone."""

    def __init__(self) -> None:
        super().__init__("the engine process does not respond")


_UNSURE = "; its rows may be written or not, look before you run it again"
_ABSENT = (
    "; no row was written so far, but a catalog may carry out a commit late: look before you run "
    "it again"
)


class NotBegunError(UnavailableError):
    """An engine process has not started a statement that it was sent; another one may run it."""

    def __init__(self) -> None:
        super().__init__("the engine process has not started the statement")


class EngineLostError(UnavailableError):
    """An engine process ended with work in progress."""

    def __init__(self, cause: Cause, detail: str = "", mark: str = "") -> None:
        """Take the mark of the commit that it would have made; see `write_marks`."""
        super().__init__(f"the engine process ended: {cause.value}")
        self.cause = cause
        self.detail = detail
        self.mark = mark

    def told(self, *, wrote: bool, is_absent: bool = False) -> CarawayError:
        """Return the error for the client whose statement ran there.

        `is_absent` says that the table has no commit of the statement.
        """
        unsure = (_ABSENT if is_absent else _UNSURE) if wrote else ""
        if self.cause is Cause.CLOSED:
            return ShuttingDownError(f"the engine that ran the statement was ended{unsure}")
        if self.cause is Cause.MEMORY:
            return OutOfMemoryQueryError(
                f"the engine was ended while running the statement: {self.detail}; make the "
                f"statement do less, or raise runtime.query.memory_limit{unsure}"
            )
        return _ended(self.cause, unsure)


class EngineMovedError(EngineLostError):
    """The threads of a process take no work, because of other statements than this one."""

    def __init__(self) -> None:
        super().__init__(Cause.HUNG)


def _ended(cause: Cause, unsure: str) -> QueryError:
    how = {
        Cause.HUNG: "it did not stop cancelled work",
        Cause.CRASH: "it crashed",
        Cause.KILLED: "it was killed",
    }[cause]
    remedy = unsure or "; run the statement again, or make it shorter or simpler"
    return ExecutionError(f"the engine ended while running the statement: {how}{remedy}")
