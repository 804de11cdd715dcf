"""Messages that are rows, without an event around them: what each of them changes."""

from collections.abc import Callable, Mapping
from typing import Any

from caraway_plugins.changes.target import BadChangesError, ChangeTarget

Keys = Callable[[int], Mapping[str, Any]]
"""Returns the columns of the primary key that the key of a message has, by its number."""


def no_keys(_number: int) -> Mapping[str, Any]:
    """Return that messages have no keys."""
    return {}


def event_of(row: Any, number: int, target: ChangeTarget, keys: Keys) -> Any:
    """Return the event of a row; without a row, it deletes the row of its key.

    It changes nothing if there is no key, or rows are not told apart.

    Raises:
        BadChangesError: the key of the message cannot be read.
    """
    key = target.primary_key
    if row is None:
        before = _key_of(number, keys) if key else {}
        return {"op": "d", "before": before} if before else None
    if not isinstance(row, dict):
        return {"op": "c", "after": row}
    if any(name not in row for name in key):
        row = {**_key_of(number, keys), **row}
    if not target.is_learned:
        # A topic is written for many readers, and has fields that this one leaves out.
        row = {name: row[name] for name in target.schema.names if name in row}
    return {"op": "c", "after": row}


def _key_of(number: int, keys: Keys) -> Mapping[str, Any]:
    try:
        return keys(number)
    except BadChangesError as exc:
        raise BadChangesError(f"event {number + 1}: its key: {exc.message}") from exc
