"""The errors of statements that must run in another engine process than this one."""

from caraway_core.errors import UnavailableError


class RunsApartError(UnavailableError):
    """A statement must run in a separate engine process, which can be ended for it alone."""

    def __init__(self) -> None:
        super().__init__("the statement must run in a process of its own")


class RunsInMainError(UnavailableError):
    """A statement writes to a table in memory, which only the main engine process may do."""

    def __init__(self) -> None:
        super().__init__("the statement must run in the main engine process")
