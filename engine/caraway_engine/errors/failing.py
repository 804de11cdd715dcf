"""Carries database errors through the engine, which keeps only their text."""

import re
import secrets
from collections import OrderedDict
from threading import Lock

from caraway_core.errors import QueryError

_MOST = 256
_MARK = re.compile(r"caraway-remote-([0-9a-f]{16})")
_errors: OrderedDict[str, QueryError] = OrderedDict()
_lock = Lock()


class RemoteFailure(Exception):
    """Represents a database error while it passes through the engine."""


def marked(error: QueryError) -> RemoteFailure:
    """Return the exception to raise inside the engine instead of an error."""
    mark = secrets.token_hex(8)
    with _lock:
        _errors[mark] = error
        if len(_errors) > _MOST:
            _errors.popitem(last=False)
    return RemoteFailure(f"caraway-remote-{mark}")


def found(text: str) -> QueryError | None:
    """Return the original error for an engine error text that contains its mark, or None."""
    match = _MARK.search(text)
    with _lock:
        return _errors.get(match[1]) if match else None
