"""Rejects manifest keys that this build does not implement, by name; none is ignored.

Remove an entry when its feature is implemented.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from caraway_core.errors import Problem
from caraway_core.manifest.documents.document import Document, Location

BUILT = (
    "this build has: catalogs, datasets, views, models, embeddings, rerankers, tools, workers, "
    "functions, secrets, dependencies"
)


def _is_present(value: object) -> bool:
    return value not in (None, [], {}, "")


def _is_on(value: object) -> bool:
    """Return whether a section that is on by default is present and not disabled."""
    is_off = isinstance(value, dict) and value.get("enabled") is False
    return value is not None and not is_off


def _is_any_on(value: object) -> bool:
    return any(map(_is_on, value.values())) if isinstance(value, dict) else _is_present(value)


def _is_enabled(value: object) -> bool:
    """Return whether a section that is off by default is enabled."""
    return isinstance(value, dict) and value.get("enabled") is True


@dataclass(frozen=True, slots=True)
class UnsupportedKey:
    """A key that is rejected if `applies` accepts its value; `*` in the path matches every item.

    `what` names the rejected thing if it is not the key itself.
    """

    path: str
    applies: Callable[[Any], bool]
    remedy: str = "remove it"
    what: str = ""


_OFF = "remove it or set its 'enabled' to false"

IN_MANIFEST = (
    *(
        UnsupportedKey(section, _is_present, f"remove it ({BUILT})")
        for section in ("search_engines", "evals")
    ),
    UnsupportedKey("extensions", _is_any_on),
    UnsupportedKey("management", _is_enabled, _OFF),
    UnsupportedKey("runtime.policy", _is_on),
    UnsupportedKey(
        "runtime.source_rate_control",
        _is_on,
        "requests_per_second_limit of a dataset limits each process; remove it",
    ),
    UnsupportedKey("runtime.auth.oidc", _is_on, _OFF),
)


def _asks(key: str, applies: Callable[[object], bool]) -> Callable[[object], bool]:
    """Return a check that an enabled acceleration has a rejected value."""

    def found(section: object) -> bool:
        return isinstance(section, dict) and _is_on(section) and applies(section.get(key))

    return found


def _is_any_of(*values: object) -> Callable[[object], bool]:
    return lambda value: (value.lower() if isinstance(value, str) else value) in values


def _is_of_an_index(section: object) -> bool:
    """Return whether a conflict action names an index, which is not implemented yet."""
    if not _asks("on_conflict", _is_present)(section) or not isinstance(section, dict):
        return False
    actions, primary = section["on_conflict"], _words(section.get("primary_key"))
    return isinstance(actions, dict) and any(_words(key) != primary for key in actions)


def _words(columns: object) -> frozenset[str]:
    return frozenset(re.findall(r'"[^"]*"|[^\s(),]+', str(columns or "")))


_IN_ACCELERATION = tuple(
    UnsupportedKey("acceleration", applies, "remove it or set 'enabled' to false", what)
    for what, applies in (
        ("'on_conflict' over an index", _is_of_an_index),
        ("'write_mode'", _asks("write_mode", _is_any_of("write_back"))),
    )
)
IN_DATASET = (
    *_IN_ACCELERATION,
    UnsupportedKey("replication", _is_enabled, _OFF),
)
IN_VIEW = _IN_ACCELERATION
IN_CATALOG = (
    UnsupportedKey(
        "acceleration", _is_on, "remove it, and accelerate a view over a table of the catalog"
    ),
)


def problems(document: Document, refusals: tuple[UnsupportedKey, ...]) -> Iterator[Problem]:
    """Yield a problem for every key of the document that this build rejects."""
    for refusal in refusals:
        for location, value in _find(document.value, refusal.path.split("."), ()):
            if refusal.applies(value):
                what = refusal.what or f"'{refusal.path.rpartition('*.')[2]}'"
                message = f"{what} is not implemented yet; {refusal.remedy}"
                yield document.problem(location, message)


def _find(value: object, steps: list[str], at: Location) -> Iterator[tuple[Location, object]]:
    if not steps:
        yield at, value
    elif steps[0] == "*" and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find(item, steps[1:], (*at, index))
    elif isinstance(value, dict) and steps[0] in value:
        yield from _find(value[steps[0]], steps[1:], (*at, steps[0]))
