"""Filters of scans, as clients of Iceberg send them, as conditions in SQL.

A condition may let more rows through than the filter: clients apply the filter to what they read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from caraway_core.errors import InvalidRequestError

_MOST_DEPTH = 64
_EVERYTHING = ""
_OPPOSITES = {
    "eq": "not-eq",
    "lt": "gt-eq",
    "gt": "lt-eq",
    "in": "not-in",
    "is-null": "not-null",
    "is-nan": "not-nan",
    "starts-with": "not-starts-with",
    "and": "or",
}
_OPPOSITE = {**_OPPOSITES, **{other: one for one, other in _OPPOSITES.items()}}
_SIGNS = {"eq": "=", "lt": "<", "lt-eq": "<=", "gt": ">", "gt-eq": ">=", "not-eq": "<>"}
_SIGNS_OF_MOMENTS = {"lt", "gt", "gt-eq"}
"""Others could exclude moments whose nanoseconds are cut off where they are written."""
Kinds = Mapping[str, str]
"""The primitive types of Iceberg that columns have, by name."""


def columns(expression: Any) -> frozenset[str]:
    """Return the names in a filter; of a field in a struct, that with dots.

    Raises:
        InvalidRequestError: it is no filter.
    """
    return frozenset(_columns(expression, 0))


def condition(expression: Any, kinds: Kinds) -> str:
    """Return a condition in SQL; "" lets all rows through.

    Raises:
        InvalidRequestError: the expression is no filter.
    """
    return _condition(expression, kinds, is_negated=False, depth=0)


def quoted(name: str) -> str:
    """Return a name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def _columns(expression: Any, depth: int) -> Iterator[str]:
    kind = _kind(expression, depth)
    if kind in ("and", "or"):
        yield from _columns(expression.get("left"), depth + 1)
        yield from _columns(expression.get("right"), depth + 1)
    elif kind == "not":
        yield from _columns(expression.get("child"), depth + 1)
    elif kind not in ("true", "false"):
        yield _term(expression)[0]


def _condition(expression: Any, kinds: Kinds, *, is_negated: bool, depth: int) -> str:
    kind = _kind(expression, depth)
    if kind == "not":
        inner = expression.get("child")
        return _condition(inner, kinds, is_negated=not is_negated, depth=depth + 1)
    if kind in ("true", "false"):
        return _EVERYTHING if (kind == "true") != is_negated else "false"
    if is_negated:
        kind = _OPPOSITE[kind]
    if kind in ("and", "or"):
        sides = [
            _condition(expression.get(side), kinds, is_negated=is_negated, depth=depth + 1)
            for side in ("left", "right")
        ]
        return _joined(kind, sides)
    column, is_plain = _term(expression)
    if not is_plain or column not in kinds:
        return _EVERYTHING
    return _predicate(kind, quoted(column), kinds[column], expression)


def _joined(kind: str, sides: Sequence[str]) -> str:
    if kind == "and":
        return " AND ".join(side for side in sides if side)
    return f"({' OR '.join(f'({side})' for side in sides)})" if all(sides) else _EVERYTHING


def _predicate(kind: str, column: str, type_: str, expression: Mapping[str, Any]) -> str:
    match kind:
        case "is-null":
            return f"{column} IS NULL"
        case "not-null":
            return f"{column} IS NOT NULL"
        case "in" | "not-in" if type_ != "timestamp":
            values = [_literal(each, type_) for each in expression.get("values", ())]
            if not values or None in values:
                return _EVERYTHING
            inside = ", ".join(filter(None, values))
            if kind == "in":
                return f"{column} IN ({inside})"
            return f"({column} NOT IN ({inside}) OR {column} IS NULL)"
        case "starts-with" if type_ == "string" and isinstance(expression.get("value"), str):
            return f"starts_with({column}, {_text(expression['value'])})"
    value = _literal(expression.get("value"), type_)
    signs = _SIGNS_OF_MOMENTS if type_ == "timestamp" else _SIGNS
    if kind not in signs or value is None:
        return _EVERYTHING
    found = f"{column} {_SIGNS[kind]} {value}"
    # What differs from a value may be NULL, as readers of Iceberg have it.
    return f"({found} OR {column} IS NULL)" if kind == "not-eq" else found


def _literal(value: Any, type_: str) -> str | None:
    """Return a value of a column as SQL; None where its form is not known."""
    make = _LITERALS.get(type_.partition("(")[0])
    return None if make is None else make(value, type_)


def _number(value: Any, _type: str) -> str | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"({value!r})" if is_number and value == value and abs(value) < 1e300 else None


def _integer(value: Any, _type: str) -> str | None:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return f"({value})" if is_integer and -(2**63) <= value < 2**63 else None


def _cast(sql: str) -> Callable[[Any, str], str | None]:
    return lambda value, _type: f"CAST({_text(value)} AS {sql})" if _is_plain_text(value) else None


def _is_plain_text(value: Any) -> bool:
    """Return whether a text may stand for a number or a moment: it fails to, if it is another."""
    return isinstance(value, str) and all(each in "0123456789-+:.T " for each in value)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


# Numbers of 32 bits with fractions are missing: SQL compares them as such of 64 bits.
_LITERALS: dict[str, Callable[[Any, str], str | None]] = {
    "boolean": lambda value, _type: str(value) if isinstance(value, bool) else None,
    "int": _integer,
    "long": _integer,
    "double": _number,
    "string": lambda value, _type: _text(value) if isinstance(value, str) else None,
    "date": _cast("DATE"),
    "timestamp": _cast("TIMESTAMP"),
    "decimal": lambda value, type_: _cast(type_)(value, type_),
}


def _term(expression: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the column of a predicate, and whether its own value is compared."""
    term = expression.get("term")
    if isinstance(term, str):
        return term, True
    if isinstance(term, dict):
        inner = term.get("term")
        if isinstance(inner, str):
            return inner, term.get("type") == "reference"
    raise InvalidRequestError("'filter' has a predicate without a 'term'")


def _kind(expression: Any, depth: int) -> str:
    if depth > _MOST_DEPTH:
        raise InvalidRequestError(f"'filter' is nested more than {_MOST_DEPTH} deep")
    if isinstance(expression, bool):
        return str(expression).lower()
    kind = expression.get("type") if isinstance(expression, dict) else None
    if kind == "not" or kind in ("true", "false") or kind in _OPPOSITE:
        return str(kind)
    raise InvalidRequestError(f"'filter' has an expression of an unknown type: {str(kind)[:50]}")
