"""Spells values of Python as SQL literals of a dialect."""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from caraway_core.loading.dialects import Dialect, Kind
from caraway_engine.remote.kinds import MOST_DIGITS, NotPushableError, Term


@dataclass(frozen=True, slots=True)
class SqlLiteral:
    """A value for the template of a dialect with this name."""

    kind: Kind
    template: str
    content: str
    digits: int = 0
    scale: int = 0


def spelled(value: object, dialect: Dialect) -> Term:
    """Return a value as an SQL literal of a dialect.

    Raises:
        NotPushableError: the dialect has none for it.
    """
    first, last = dialect.years
    if isinstance(value, datetime.date) and not first <= value.year <= last:
        raise NotPushableError("a date that the database has not")
    found = literal_of(value)
    if found.template not in dialect.literals:
        raise NotPushableError(f"a literal of kind {found.template}")
    sql = dialect.literals[found.template].format(
        _escaped(found.content, dialect), precision=found.digits + found.scale, scale=found.scale
    )
    return Term(sql, found.kind, digits=found.digits, scale=found.scale, is_literal=True)


def _escaped(content: str, dialect: Dialect) -> str:
    if "\\" in content and not dialect.backslash:
        raise NotPushableError("a text with a backslash")
    if "'" in content and not dialect.apostrophe:
        raise NotPushableError("a text with an apostrophe")
    content = content.replace("\\", dialect.backslash)
    return content.replace("''", dialect.apostrophe)


def literal_of(value: object) -> SqlLiteral:
    """Return the literal of a value.

    Raises:
        NotPushableError: no dialect has one.
    """
    written = _LITERALS.get(type(value))
    if written is None:
        raise NotPushableError(f"a value of {type(value).__name__}")
    return written(value)


def _boolean(value: bool) -> SqlLiteral:
    return SqlLiteral("bool", "true" if value else "false", "")


def _integer(value: int) -> SqlLiteral:
    if not -(2**63) <= value < 2**63:
        raise NotPushableError("a number of more than 64 bits")
    digits = len(str(abs(value)))
    if value == -(2**63):
        return SqlLiteral("int", "smallest", "", digits)
    return SqlLiteral("int", "int", str(value), digits)


def _decimal(value: Decimal) -> SqlLiteral:
    if not value.is_finite() or len(value.as_tuple().digits) > MOST_DIGITS:
        raise NotPushableError("a decimal of many digits")
    exponent = value.as_tuple().exponent
    scale = max(0, -exponent) if isinstance(exponent, int) else 0
    digits = max(len(value.as_tuple().digits) - scale, 1)
    return SqlLiteral("decimal", "decimal", f"{value:f}", digits, scale)


def _double(value: float) -> SqlLiteral:
    if value != value or value in (float("inf"), float("-inf")):
        raise NotPushableError("a number that is not finite")
    return SqlLiteral("double", "double", repr(value))


def _text(value: str) -> SqlLiteral:
    if "\0" in value:
        raise NotPushableError("text with NUL")
    return SqlLiteral("text", "text", value.replace("'", "''"))


def _date(value: datetime.date) -> SqlLiteral:
    return SqlLiteral("date", "date", value.isoformat())


def _moment(value: datetime.datetime) -> SqlLiteral:
    if value.tzinfo is None:
        return SqlLiteral("timestamp", "timestamp", value.isoformat(sep=" "))
    moment = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return SqlLiteral("timestamptz", "timestamptz", moment.isoformat(sep=" "))


_LITERALS: Mapping[type, Callable[[Any], SqlLiteral]] = {
    bool: _boolean,
    int: _integer,
    float: _double,
    Decimal: _decimal,
    str: _text,
    datetime.date: _date,
    datetime.datetime: _moment,
}
