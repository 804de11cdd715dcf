"""The mark of a commit, by which it is found again after the process that made it has ended."""

import uuid
from contextvars import ContextVar

_given: ContextVar[str] = ContextVar("write_mark", default="")


def give() -> str:
    """Give a new mark to the next commit of this context, and return it."""
    mark = uuid.uuid4().hex
    _given.set(mark)
    return mark


def current() -> str:
    """Return the mark of a commit of this context; a new one if none is given."""
    return _given.get() or uuid.uuid4().hex
