"""What an engine process was given to do."""

from dataclasses import dataclass

from caraway_core.statements import Statement


@dataclass(slots=True)
class Work:
    """A call or a stream in progress; `statement` is the user's statement that it runs, if any."""

    statement: Statement | None
    began_s: float
    is_stopped: bool = False
    is_begun: bool = False
    """Whether the process has started it."""
    is_write: bool = False
    asked_s: float | None = None
    """When the process was last asked how long it has planned, while it has not replied."""
    planned_s: float = 0.0


def statement_of(value: object) -> Statement | None:
    """Return the statement that an argument is, or contains."""
    if isinstance(value, Statement):
        return value
    about = getattr(value, "statement", None)
    return about if isinstance(about, Statement) else None
