"""Rejects the keys of manifests that other runtimes have, each with its reason; none is ignored."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from caraway_core.errors import Problem
from caraway_core.manifest.documents.document import Document, Location


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

    `reason` says why it has no effect that could be kept, and `what` names the rejected thing if it
    is not the key itself.
    """

    path: str
    applies: Callable[[Any], bool]
    reason: str
    remedy: str = "remove it"
    what: str = ""


_OFF = "remove it or set its 'enabled' to false"

IN_MANIFEST = (
    UnsupportedKey(
        "search_engines",
        _is_present,
        "indexes belong to the columns of datasets",
        "write 'full_text_search' or 'embeddings' at a column",
    ),
    UnsupportedKey("evals", _is_present, "a runtime answers, and does not judge models"),
    UnsupportedKey(
        "extensions", _is_any_on, "plug-ins are packages, which need no key once they are installed"
    ),
    UnsupportedKey(
        "management",
        _is_enabled,
        "a management service starts its runtimes, which sign in nowhere",
        _OFF,
    ),
    UnsupportedKey(
        "runtime.policy",
        _is_on,
        "the end of a key (:ro, :rw, :admin) and 'access' of datasets say who may do what",
    ),
    UnsupportedKey(
        "runtime.source_rate_control",
        _is_on,
        "processes do not share a count of requests",
        "write 'requests_per_second_limit' at a dataset, which limits each process",
    ),
    UnsupportedKey(
        "runtime.auth.oidc",
        _is_on,
        "a runtime takes keys; people sign in at the management service, also over OIDC",
        _OFF,
    ),
)


def _asks(key: str, applies: Callable[[object], bool]) -> Callable[[object], bool]:
    """Return a check that an enabled acceleration has a rejected value."""

    def found(section: object) -> bool:
        return isinstance(section, dict) and _is_on(section) and applies(section.get(key))

    return found


def _is_any_of(*values: object) -> Callable[[object], bool]:
    return lambda value: (value.lower() if isinstance(value, str) else value) in values


def _is_of_an_index(section: object) -> bool:
    """Return whether a conflict action names an index."""
    if not _asks("on_conflict", _is_present)(section) or not isinstance(section, dict):
        return False
    actions, primary = section["on_conflict"], _words(section.get("primary_key"))
    return isinstance(actions, dict) and any(_words(key) != primary for key in actions)


def _words(columns: object) -> frozenset[str]:
    return frozenset(re.findall(r'"[^"]*"|[^\s(),]+', str(columns or "")))


_IN_ACCELERATION = tuple(
    UnsupportedKey("acceleration", applies, reason, "remove it or set 'enabled' to false", what)
    for what, applies, reason in (
        (
            "'on_conflict' over an index",
            _is_of_an_index,
            "rows are replaced by their primary key alone",
        ),
        (
            "'write_mode' write_back",
            _asks("write_mode", _is_any_of("write_back")),
            "a write is acknowledged when its source has it, so that none is lost with a process",
        ),
    )
)
IN_DATASET = (
    *_IN_ACCELERATION,
    UnsupportedKey(
        "replication",
        _is_enabled,
        "writes go to the source, and come back with the statement or the next refresh",
        _OFF,
    ),
)
IN_VIEW = _IN_ACCELERATION
IN_CATALOG = (
    UnsupportedKey(
        "acceleration",
        _is_on,
        "a catalog may have 100,000 tables",
        "remove it, and accelerate a view over a table of the catalog",
    ),
)


def problems(document: Document, refusals: tuple[UnsupportedKey, ...]) -> Iterator[Problem]:
    """Yield a problem for every key of the document that is rejected."""
    for refusal in refusals:
        for location, value in _find(document.value, refusal.path.split("."), ()):
            if refusal.applies(value):
                what = refusal.what or f"'{refusal.path.rpartition('*.')[2]}'"
                message = f"{what} is refused: {refusal.reason}; {refusal.remedy}"
                yield document.problem(location, message)


def _find(value: object, steps: list[str], at: Location) -> Iterator[tuple[Location, object]]:
    if not steps:
        yield at, value
    elif steps[0] == "*" and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find(item, steps[1:], (*at, index))
    elif isinstance(value, dict) and steps[0] in value:
        yield from _find(value[steps[0]], steps[1:], (*at, steps[0]))
