"""The work of an engine process."""

from dataclasses import dataclass

from caraway_core import suspects
from caraway_core.protocols.fleet import Task
from caraway_core.statements import Statement


@dataclass(slots=True)
class Work:
    """A call or a stream in progress.

    `statement` is the user's statement that it runs, if any, and `task` a part of one.
    """

    statement: Statement | None
    began_s: float
    task: Task | None = None
    is_stopped: bool = False
    is_begun: bool = False
    """True if the process has started it."""
    is_write: bool = False
    asked_s: float | None = None
    """When the process was last asked how long it has planned, while it has not replied."""
    planned_s: float = 0.0

    @property
    def is_users(self) -> bool:
        """True if a user's statement decides its course. Such work can run again elsewhere."""
        return self.statement is not None or self.task is not None

    @property
    def key(self) -> str | None:
        """The key of what is suspected if its process ends; None if it is the work of no user."""
        if self.statement is not None:
            return suspects.key(self.statement.sql, self.statement.parameters)
        return None if self.task is None else key_of(self.task)


def key_of(task: Task) -> str:
    """Return the key of a task. Statements share fragments, so it is that of its own statement."""
    return suspects.key(f"{task.query_id} {task.stage}", {"shares": task.shares})


def statement_of(value: object) -> Statement | None:
    """Return the statement that an argument is, or contains."""
    if isinstance(value, Statement):
        return value
    about = getattr(value, "statement", None)
    return about if isinstance(about, Statement) else None
