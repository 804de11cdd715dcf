"""Computes the shape of a statement: its text without literals, to recognise equal statements.

Only texts in which every literal is certain have a shape. A statement without a shape runs like any
other.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from caraway_core.sqltext import lexer, placeholders
from caraway_core.statements import Statement

_LONGEST = 4_096
_MOST_LITERALS = 64
_FIRST_PROBE = 7_301_000_000_000_000
_INTEGERS = range(-(1 << 63), 1 << 63)
_SELECT = re.compile(r"\s*select\b.*?\bwhere\b", re.IGNORECASE | re.DOTALL)
# These never occur in a lookup, so such statements need not be planned to find out.
_OTHERS = re.compile(
    r"\b(?:join|group\s+by|order\s+by|having|distinct|union|except|intersect|between|like|exists"
    r"|over)\b",
    re.IGNORECASE,
)
_INSIDE = {int: "\x00i", str: "\x00s"}
_PLAIN = frozenset({"word", "comma"})
_LITERALS = frozenset({"text", "number", "placeholder"})
_KEPT = frozenset("()=<>!+-*/%|&^~.")
_BEFORE_COUNTS = ("limit", "offset")
_SIGN = re.compile(r"[=(,]\s*-$")
_LONGEST_NUMBER = 18
# A token that touches a quoted token may be its prefix, and one that touches a number a part of it.
_PREFIX = re.compile(r"[\w@#$'\"]")
_TOUCHING = re.compile(r"[\w@#$'\".]")


class _NoShapeError(Exception):
    """The statement has no shape."""


@dataclass(frozen=True, slots=True)
class StatementShape:
    """The shape of a statement: its text with marks for integer and string literals."""

    text: str
    values: tuple[int | str, ...]

    def probe(self) -> str:
        """Return a statement of this shape whose literals are unique in its text."""
        marks = iter(self.probes())
        return re.sub("\x00[is]", lambda _: _literal(next(marks)), self.text)

    def probes(self) -> Mapping[int | str, int]:
        """Return the literals of the probe, with the position of each."""
        return {
            _FIRST_PROBE + place if isinstance(value, int) else f"caraway probe {place}": place
            for place, value in enumerate(self.values)
        }


def of(statement: Statement) -> StatementShape | None:
    """Return the shape of a statement, or None."""
    sql = statement.sql
    if len(sql) > _LONGEST or not _SELECT.match(sql) or "\x00" in sql or _OTHERS.search(sql):
        return None
    try:
        if statement.parameters:
            found = placeholders.find(sql)
            found.check(statement.parameters)
            sql = found.sql
        shape = _marked(sql, statement.parameters)
    except Exception:  # noqa: BLE001 -- normal planning reports the error
        return None
    return shape if 0 < len(shape.values) <= _MOST_LITERALS else None


def _marked(sql: str, parameters: Mapping[str, object]) -> StatementShape:
    values: list[int | str] = []
    pieces: list[str] = []
    done = 0
    for token in lexer.matches(sql):
        kind = token.lastgroup or ""
        if kind in _PLAIN:
            continue
        start, end = token.start(), token.end(kind)
        if kind not in _LITERALS:
            _check(kind != "comment" and (sql[start] in _KEPT or _stays(sql, kind, start, end)))
        elif kind != "number" or not sql[done:start].rstrip().lower().endswith(_BEFORE_COUNTS):
            _check(not _TOUCHING.match(sql, end) and not _TOUCHING.match(sql[start - 1 : start]))
            start -= kind == "number" and _SIGN.search(sql, done, start) is not None
            value = _value(kind, sql[start:end], parameters)
            values.append(value)
            pieces += sql[done:start], _INSIDE[type(value)]
            done = end
    return StatementShape("".join((*pieces, sql[done:])), tuple(values))


def _value(kind: str, text: str, parameters: Mapping[str, object]) -> int | str:
    """Return the value of a literal, or the value bound to a placeholder."""
    value: Any
    if kind == "placeholder":
        value = parameters[text[1:]]
    elif kind == "text":
        _check("\\" not in text and text.count("'") % 2 == 0)
        value = text[1:-1].replace("''", "'")
    else:
        digits = text.removeprefix("-")
        _check(digits.isdigit() and len(digits) <= _LONGEST_NUMBER)
        value = int(text)
    _check(type(value) in _INSIDE and (type(value) is str or value in _INTEGERS))
    checked: int | str = value
    return checked


def _stays(sql: str, kind: str, start: int, end: int) -> bool:
    """Return whether a token stays unchanged: a quoted name, or the `;` at the end."""
    if kind == "name":
        is_closed = sql.count('"', start, end) % 2 == 0
        return sql[start] == '"' and is_closed and not _PREFIX.match(sql[start - 1 : start])
    return kind == "end" and not sql[end:].strip()


def _check(holds: bool) -> None:
    if not holds:
        raise _NoShapeError


def _literal(value: int | str) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"
