"""The shape of a statement: its text with the literals taken out, so that equal ones are known.

Only texts in which it is certain what a literal is have a shape. None is needed: a statement
without one is run as any other.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from caraway_core.protocols.dispatch import Statement
from caraway_engine import placeholders

_LONGEST = 4_096
_MOST_LITERALS = 64
_FIRST_PROBE = 7_301_000_000_000_000
_INTEGERS = range(-(1 << 63), 1 << 63)
_SELECT = re.compile(r"\s*select\b.*?\bwhere\b", re.IGNORECASE | re.DOTALL)
# These are in no lookup, so nothing has to be planned to find that out.
_OTHERS = re.compile(
    r"\b(?:join|group\s+by|order\s+by|having|distinct|union|except|intersect|between|like|exists"
    r"|over)\b",
    re.IGNORECASE,
)
# What may hold or hide a literal's characters is consumed first.
_TOKEN = re.compile(
    r"""
      (?P<text>'[^'\\]*(?:''[^'\\]*)*')(?!')
    | "(?:[^"]++|"")*+"
    | (?P<limit>\b(?:limit|offset)\s+\d+\b)
    | \$(?P<bound>\w+)(?![\w$'"])
    | ;\s*\Z
    | [^\W\d]\w*(?P<prefix>['"])?
    | (?P<number>(?:(?<=[=(,])\s*-)?(?<![\w.])\d{1,18}(?![\w.]))
    | (?P<other>[\d\\$?:;`#@{}\[\]'"]|--|/\*)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_INSIDE = {int: "\x00i", str: "\x00s"}


class _NoShapeError(Exception):
    """The statement has none."""


@dataclass(frozen=True, slots=True)
class Shape:
    """`text` has a mark in place of each literal, which tells integers from texts."""

    text: str
    values: tuple[int | str, ...]

    def probe(self) -> str:
        """Return a statement of this shape whose literals are found nowhere else."""
        marks = iter(self.probes())
        return re.sub("\x00[is]", lambda _: _literal(next(marks)), self.text)

    def probes(self) -> Mapping[int | str, int]:
        """Return the literals of the probe, and which place each has."""
        return {
            _FIRST_PROBE + place if isinstance(value, int) else f"caraway probe {place}": place
            for place, value in enumerate(self.values)
        }


def of(statement: Statement) -> Shape | None:
    """Return the shape of a statement, if it has one."""
    sql = statement.sql
    if len(sql) > _LONGEST or not _SELECT.match(sql) or "\x00" in sql or _OTHERS.search(sql):
        return None
    values: list[int | str] = []
    try:
        if statement.parameters:
            found = placeholders.find(sql)
            found.check(statement.parameters)
            sql = found.sql
        text = _TOKEN.sub(_taker(values, statement.parameters), sql)
    except Exception:  # Whatever is wrong with it, the ordinary way says so.
        return None
    return Shape(text, tuple(values)) if 0 < len(values) <= _MOST_LITERALS else None


def _taker(
    values: list[int | str], parameters: Mapping[str, Any]
) -> Callable[[re.Match[str]], str]:
    def take(found: re.Match[str]) -> str:
        match found.lastgroup:
            case "text":
                value: Any = found["text"][1:-1].replace("''", "'")
            case "number":
                value = int("".join(found["number"].split()))
            case "bound":
                value = parameters[found["bound"]]
            case "prefix" | "other":
                raise _NoShapeError
            case _:
                return found[0]
        if type(value) not in _INSIDE or (type(value) is int and value not in _INTEGERS):
            raise _NoShapeError
        values.append(value)
        return _INSIDE[type(value)]

    return take


def _literal(value: int | str) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"
