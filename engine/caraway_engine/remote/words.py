"""Generates SQL for PostgreSQL, for expressions that it evaluates exactly as the engine does.

Everything else raises `NotPushableError` and stays with the engine. Excluded are floating-point
comparisons (NaN and -0.0 differ) and divisions (other digits). So are functions of text and time,
and casts that may fail or round.
"""

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

import pyarrow as pa

from caraway_core.tables import RemoteColumn

types = pa.types
Kind = Literal["bool", "int", "decimal", "double", "text", "date", "timestamp", "timestamptz", ""]
_COMPARISONS = {"equal": "=", "not_equal": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*"}
_INTEGERS = {8: "int2", 16: "int2", 32: "int4", 64: "int8"}
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
_MOST_DIGITS = 38
_PLAIN_PATTERN = re.compile(r"[^\\]*")


class NotPushableError(Exception):
    """The database is not known to evaluate this part of a statement as the engine does."""


@dataclass(frozen=True, slots=True)
class Term:
    """An SQL expression. For kind "", only whether it is NULL is known.

    A condition that is not exact may also be true for rows that the engine rejects. `digits` are
    the digits before the decimal point of an integer or a decimal, and `scale` those after it. A
    double `is_finite` if it comes from such a number. A value that `is_text` is read as text.
    """

    sql: str
    kind: Kind = ""
    is_exact: bool = True
    digits: int = 0
    scale: int = 0
    is_finite: bool = False
    is_text: bool = False


def quoted(name: str) -> str:
    """Quote an identifier."""
    if "\0" in name:
        raise NotPushableError("a name with NUL")
    return '"' + name.replace('"', '""') + '"'


def kind_of(type_: pa.DataType) -> Kind:
    """Return how values of a type compare."""
    for test, kind in _KINDS.items():
        if test(type_):
            return kind
    return ""


def column(found: RemoteColumn) -> Term:
    """Return a column of the table itself."""
    return _typed(quoted(found.name), found.type, found)


def of_type(sql: str, type_: pa.DataType) -> Term:
    """Return an SQL expression whose result has a type of the engine."""
    return _typed(sql, type_, RemoteColumn("", type_, is_comparable=True))


def _typed(sql: str, type_: pa.DataType, found: RemoteColumn) -> Term:
    kind = kind_of(type_) if found.is_comparable else ""
    digits, scale = _digits(type_)
    return Term(sql, kind, digits=digits, scale=scale, is_text=found.is_text)


def _digits(type_: pa.DataType) -> tuple[int, int]:
    if types.is_decimal128(type_):
        return type_.precision - type_.scale, type_.scale
    return (_INTEGER_DIGITS[type_.bit_width], 0) if types.is_integer(type_) else (0, 0)


def literal(value: object) -> Term:
    """Return a Python value as an SQL literal."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return Term(_timestamp(value), "timestamptz")
    for type_, (kind, word) in _LITERALS.items():
        if type(value) is type_:
            digits, scale = _literal_digits(value)
            return Term(word(value), kind, digits=digits, scale=scale)
    raise NotPushableError(f"a value of {type(value).__name__}")


def compared(name: str, left: Term, right: Term) -> Term:
    """Return a comparison; a floating-point comparison includes all rows that may match."""
    if name not in _COMPARISONS or left.kind != right.kind or not left.kind:
        raise NotPushableError(name)
    sign = _COMPARISONS[name]
    if left.kind == "double":
        return _compared_doubles(sign, left, right)
    if left.kind == "text" and sign not in ("=", "<>"):
        left = Term(f'{left.sql} COLLATE "C"', "text", left.is_exact)
    return Term(f"({left.sql} {sign} {right.sql})", "bool")


def both(name: str, left: Term, right: Term) -> Term:
    """Return AND or OR."""
    if name not in ("and", "or") or left.kind != "bool" or right.kind != "bool":
        raise NotPushableError(name)
    return Term(
        f"({left.sql} {name.upper()} {right.sql})", "bool", left.is_exact and right.is_exact
    )


def negated(term: Term) -> Term:
    """Return NOT. An inexact condition is refused, because its negation would drop rows."""
    if term.kind != "bool" or not term.is_exact:
        raise NotPushableError("not")
    return Term(f"(NOT {term.sql})", "bool")


def null_test(term: Term, *, is_null: bool) -> Term:
    """Return IS NULL or IS NOT NULL, which work for every type."""
    if not term.is_exact:
        raise NotPushableError("is null")
    return Term(f"({term.sql} IS {'' if is_null else 'NOT '}NULL)", "bool")


def alike(value: Term, pattern: str) -> Term:
    """Return LIKE with a pattern without escapes."""
    if value.kind != "text" or not _PLAIN_PATTERN.fullmatch(pattern):
        raise NotPushableError("like")
    return Term(f"({value.sql} LIKE {literal(pattern).sql})", "bool")


def among(value: Term, options: list[Term]) -> Term:
    """Return IN with a list."""
    if (
        not options
        or value.kind in ("", "double")
        or {each.kind for each in options} != {value.kind}
    ):
        raise NotPushableError("in")
    return Term(f"({value.sql} IN ({', '.join(each.sql for each in options)}))", "bool")


def computed(name: str, left: Term, right: Term) -> Term:
    """Return arithmetic on integers and decimals, which both sides compute without rounding."""
    if name == "bitwise_shift_right" and left.kind == right.kind == "int":
        return replace(left, sql=f"({left.sql} >> ({right.sql})::int4)")
    if name not in _ARITHMETIC or left.kind != right.kind or left.kind not in ("int", "decimal"):
        raise NotPushableError(name)
    sql = f"({left.sql} {_ARITHMETIC[name]} {right.sql})"
    if name == "multiply":
        return Term(
            sql, left.kind, digits=left.digits + right.digits, scale=left.scale + right.scale
        )
    digits, scale = max(left.digits, right.digits) + 1, max(left.scale, right.scale)
    return Term(sql, left.kind, digits=digits, scale=scale)


def cast(term: Term, to: pa.DataType) -> Term:
    """Return a cast that does not round, and fails only where the engine's cast fails too."""
    kind = kind_of(to)
    digits, scale = _digits(to)
    if term.kind == kind == "int":
        return Term(f"({term.sql})::{_integer(to)}", "int", digits=digits)
    if term.kind in ("int", "decimal") and kind == "decimal":
        if digits < term.digits or scale < term.scale:
            raise NotPushableError("a cast that may fail or round")
        return Term(f"({term.sql})::numeric", "decimal", digits=digits, scale=scale)
    if term.kind in ("int", "decimal") and types.is_float64(to):
        return Term(f"({term.sql})::float8", "double", is_finite=True)
    if term.kind == kind == "text":
        return term
    raise NotPushableError(f"a cast to {to}")


def ordered(term: Term, *, descending: bool, nulls_first: bool) -> str:
    """Return one key of ORDER BY."""
    if term.kind in ("", "double"):
        raise NotPushableError("order by")
    collation = ' COLLATE "C"' if term.kind == "text" else ""
    return (
        f"{term.sql}{collation} {'DESC' if descending else 'ASC'} "
        f"NULLS {'FIRST' if nulls_first else 'LAST'}"
    )


def sent(term: Term, type_: pa.DataType) -> str:
    """Return a column of an answer, converted to a form that the driver supports for its type."""
    if term.is_text or types.is_decimal(type_):
        items = "[]" if types.is_list(type_) else ""
        return f"({term.sql})::text{items}"
    if types.is_integer(type_) and term.kind == "int":
        return f"({term.sql})::{_integer(type_)}"
    return term.sql


def _integer(type_: pa.DataType) -> str:
    if not types.is_signed_integer(type_):
        raise NotPushableError("unsigned numbers")
    return _INTEGERS[type_.bit_width]


def _compared_doubles(sign: str, left: Term, right: Term) -> Term:
    """Compare so that no row is missed: the engine treats NaN and -0.0 differently."""
    if sign == "<>":
        raise NotPushableError("not_equal")
    wide = sign if sign == "=" else sign[0] + "="
    tests = [f"{left.sql} {wide} {right.sql}"]
    tests += [f"{each.sql} = 'NaN'::float8" for each in (left, right)]
    return Term(f"({' OR '.join(tests)})", "bool", is_exact=False)


def _literal_digits(value: object) -> tuple[int, int]:
    if type(value) is int:
        return len(str(abs(value))), 0
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        scale = max(0, -exponent) if isinstance(exponent, int) else 0
        return max(len(value.as_tuple().digits) - scale, 1), scale
    return 0, 0


def _text(value: str) -> str:
    if "\0" in value:
        raise NotPushableError("text with NUL")
    return "'" + value.replace("'", "''") + "'::text"


def _number(value: int) -> str:
    if not -(2**63) <= value < 2**63:
        raise NotPushableError("a number of more than 64 bits")
    return f"({value})::int8" if value != -(2**63) else "('-9223372036854775808')::int8"


def _decimal(value: Decimal) -> str:
    if not value.is_finite() or len(value.as_tuple().digits) > _MOST_DIGITS:
        raise NotPushableError("a decimal of many digits")
    return f"({value:f})::numeric"


def _double(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        raise NotPushableError("a number that is not finite")
    return f"('{value!r}')::float8"


def _date(value: datetime.date) -> str:
    return f"DATE '{value.isoformat()}'"


def _timestamp(value: datetime.datetime) -> str:
    text = value.replace(tzinfo=None).isoformat(sep=" ")
    if value.tzinfo is None:
        return f"TIMESTAMP '{text}'"
    return (
        f"TIMESTAMPTZ '{value.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(sep=' ')}+00'"
    )


_KINDS: Mapping[Callable[[pa.DataType], bool], Kind] = {
    types.is_boolean: "bool",
    types.is_signed_integer: "int",
    types.is_decimal128: "decimal",
    types.is_floating: "double",
    types.is_string: "text",
    types.is_string_view: "text",
    types.is_date32: "date",
    lambda type_: types.is_timestamp(type_) and type_.tz is None: "timestamp",
    lambda type_: types.is_timestamp(type_) and type_.tz is not None: "timestamptz",
}
_LITERALS: Mapping[type, tuple[Kind, Callable[..., str]]] = {
    bool: ("bool", lambda value: "TRUE" if value else "FALSE"),
    int: ("int", _number),
    float: ("double", _double),
    Decimal: ("decimal", _decimal),
    str: ("text", _text),
    datetime.date: ("date", _date),
    datetime.datetime: ("timestamp", _timestamp),
}
