"""JSON pointers (RFC 6901), and rows whose nested objects become columns."""

import re
from collections.abc import Mapping
from typing import Any

from caraway_core.errors import DatasetError

_INDEX = re.compile("0|[1-9][0-9]{0,8}")
_POINTER = re.compile("(/([^~]|~[01])*)?", re.DOTALL)


def check(pointer: str, param: str) -> str:
    """Return a pointer.

    Raises:
        DatasetError: it is none.
    """
    if not _POINTER.fullmatch(pointer):
        raise DatasetError(
            "invalid", f"params.{param} is '{pointer}'; a JSON pointer is '' or begins with '/'"
        )
    return pointer


def steps(pointer: str) -> list[str]:
    """Return the names and indexes of a pointer."""
    parts = pointer.split("/")[1:]
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def find(value: object, pointer: str) -> Any:
    """Return the value at a pointer.

    Raises:
        LookupError: nothing is there.
    """
    for step in steps(pointer):
        if isinstance(value, Mapping):
            value = value[step]
        elif isinstance(value, list) and _INDEX.fullmatch(step):
            value = value[int(step)]
        else:
            raise LookupError(step)
    return value


def rows(value: Any, pointer: str, title: str) -> list[Mapping[str, Any]]:
    """Return the objects at a pointer: those of an array, or one. `null` stands for none.

    Raises:
        DatasetError: nothing is there, or something else.
    """
    try:
        found = find(value, pointer)
    except LookupError:
        raise DatasetError(
            "schema", f"an answer of '{title}' has nothing at '{pointer}'; check json_pointer"
        ) from None
    if found is None:
        return []
    many = found if isinstance(found, list) else [found]
    if not all(isinstance(each, Mapping) for each in many):
        raise DatasetError(
            "schema",
            f"an answer of '{title}' has values at '{pointer}' that are not objects; set "
            "json_pointer to the array of the rows",
        )
    return many


def unnested(row: Mapping[str, object], depth: int, title: str) -> Mapping[str, object]:
    """Return a row with the fields of nested objects in place of these, down to a depth.

    Raises:
        DatasetError: two of them have one name.
    """
    if depth == 0 or not any(isinstance(each, Mapping) for each in row.values()):
        return row
    found: dict[str, Any] = {}
    for name, value in row.items():
        inner = unnested(value, depth - 1, title) if isinstance(value, Mapping) else {name: value}
        if twice := found.keys() & inner.keys():
            raise DatasetError(
                "schema",
                f"rows of '{title}' have the name '{min(twice)}' twice when nested objects become "
                "columns; lower unnest_depth",
            )
        found |= inner
    return found
