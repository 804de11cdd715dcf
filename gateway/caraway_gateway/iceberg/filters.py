"""Filters of scans, as clients of Iceberg send them, as conditions in SQL.

A condition may let more rows through than the filter: clients apply the filter to what they read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from caraway_core.errors import InvalidRequestError

MOST_BYTES = 1024 * 1024
"""Of a filter as JSON: each file to read is given out with it."""
_MOST_DEPTH = 16
"""Of conditions in SQL, which the parser of statements can read."""
_MOST_PREDICATES = 500
_MOST_VALUES = 20_000
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
        InvalidRequestError: it is not a filter.
    """
    return frozenset(_term(each)[0] for each in _predicates(expression))


def condition(expression: object, kinds: Kinds) -> str:
    """Return a condition in SQL; "" lets all rows through, also where it would become too long.

    Raises:
        InvalidRequestError: the expression is not a filter.
    """
    lengths = [len(each.get("values") or ()) for each in _predicates(expression)]
    if len(lengths) > _MOST_PREDICATES or sum(lengths) > _MOST_VALUES:
        return _EVERYTHING
    return _condition(expression, kinds, is_negated=False, depth=0)


def quoted(name: str) -> str:
    """Return a name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def _predicates(expression: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the comparisons of a filter, however deep they are."""
    left = [expression]
    while left:
        each = left.pop()
        kind = _kind(each)
        if kind in ("and", "or"):
            left += (each.get("right"), each.get("left"))
        elif kind == "not":
            left.append(each.get("child"))
        elif kind not in ("true", "false"):
            if not isinstance(each.get("values", ()), list | tuple):
                raise InvalidRequestError("'filter' has 'values' that are no list")
            yield each


def _sides(expression: Any, kind: str) -> Iterator[object]:
    """Yield the parts of a chain of one kind, such as `a and b and c`."""
    left = [expression]
    while left:
        each = left.pop()
        if _kind(each) == kind:
            left += (each.get("right"), each.get("left"))
        else:
            yield each


def _condition(expression: Any, kinds: Kinds, *, is_negated: bool, depth: int) -> str:
    kind = _kind(expression)
    if depth > _MOST_DEPTH:
        return _EVERYTHING
    if kind == "not":
        inner = expression.get("child")
        return _condition(inner, kinds, is_negated=not is_negated, depth=depth + 1)
    if kind in ("true", "false"):
        return _EVERYTHING if (kind == "true") != is_negated else "false"
    if kind in ("and", "or"):
        sides = [
            _condition(side, kinds, is_negated=is_negated, depth=depth + 1)
            for side in _sides(expression, kind)
        ]
        return _joined(_OPPOSITE[kind] if is_negated else kind, sides)
    column, is_plain = _term(expression)
    if not is_plain or column not in kinds:
        return _EVERYTHING
    kind = _OPPOSITE[kind] if is_negated else kind
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
    # A NULL differs from every value, as in readers of Iceberg.
    return f"({found} OR {column} IS NULL)" if kind == "not-eq" else found


def _literal(value: object, type_: str) -> str | None:
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


def _is_plain_text(value: object) -> bool:
    """Return whether a text may stand for a number or a moment: it fails to, if it is another."""
    return isinstance(value, str) and all(each in "0123456789-+:.T " for each in value)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


# Numbers of 32 bits with fractions are missing: SQL compares them as such of 64 bits.
_LITERALS: dict[str, Callable[[object, str], str | None]] = {
    "boolean": lambda value, _type: str(value) if isinstance(value, bool) else None,
    "int": _integer,
    "long": _integer,
    "double": _number,
    "string": lambda value, _type: _text(value) if isinstance(value, str) else None,
    "date": _cast("DATE"),
    "timestamp": _cast("TIMESTAMP"),
    "decimal": lambda value, type_: _cast(type_)(value, type_),
}


def _term(expression: Mapping[str, object]) -> tuple[str, bool]:
    """Return the column of a predicate, and whether its own value is compared."""
    term = expression.get("term")
    if isinstance(term, str):
        return term, True
    if isinstance(term, dict):
        inner = term.get("term")
        if isinstance(inner, str):
            return inner, term.get("type") == "reference"
    raise InvalidRequestError("'filter' has a predicate without a 'term'")


def _kind(expression: Any) -> str:
    if isinstance(expression, bool):
        return str(expression).lower()
    kind = expression.get("type") if isinstance(expression, dict) else None
    if isinstance(kind, str) and (kind in ("not", "true", "false") or kind in _OPPOSITE):
        return kind
    raise InvalidRequestError(f"'filter' has an expression of an unknown type: {str(kind)[:50]}")
