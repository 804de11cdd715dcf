"""The mark of a commit, by which it is found again after the process that made it has ended."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

from caraway_core.concurrency.backoff import Delays

_LOOKS = 3
_DELAYS = Delays(0.5, 2.0)
_given: ContextVar[str] = ContextVar("write_mark", default="")


def new() -> str:
    """Return a new mark."""
    return uuid.uuid4().hex


def give() -> str:
    """Give a new mark to the next commit of this context, and return it."""
    mark = new()
    use(mark)
    return mark


def use(mark: str) -> None:
    """Give this mark to the next commit of this context; an empty one is none."""
    _given.set(mark)


def given() -> str:
    """Return the mark that the next commit of this context was given, or nothing."""
    return _given.get()


def current() -> str:
    """Return the mark of a commit of this context; a new one if none is given."""
    return given() or new()


async def found(look: Callable[[], Awaitable[int | None]]) -> int | None:
    """Return the rows of a commit, or None. One that was sent may come late: look a few times."""
    for turn in range(1, _LOOKS):
        if (count := await look()) is not None:
            return count
        await asyncio.sleep(_DELAYS.delay_s(turn))
    return await look()
