"""Carries errors of a database through the engine, which keeps nothing of them but their text."""

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
    """Stands for an error while it is inside of the engine."""


def marked(error: QueryError) -> RemoteFailure:
    """Return what to raise inside of the engine in place of an error."""
    mark = secrets.token_hex(8)
    with _lock:
        _errors[mark] = error
        if len(_errors) > _MOST:
            _errors.popitem(last=False)
    return RemoteFailure(f"caraway-remote-{mark}")


def found(text: str) -> QueryError | None:
    """Return the error that an error text of the engine stands for."""
    match = _MARK.search(text)
    with _lock:
        return _errors.get(match[1]) if match else None
