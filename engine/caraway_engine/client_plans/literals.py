"""Literals of Substrait, written as SQL of exactly their type and value."""

import datetime
from decimal import MAX_PREC, Context, Decimal
from typing import TypeAlias

from substrait.algebra_pb2 import Expression
from substrait.type_pb2 import Type

from caraway_engine.client_plans import types, words
from caraway_engine.client_plans.refusals import refusal, unsupported

Literal: TypeAlias = Expression.Literal
_EPOCH = datetime.date(1970, 1, 1)
_DAYS = (datetime.date.min - _EPOCH).days, (datetime.date.max - _EPOCH).days
_UNSIGNED = 1
_SECOND_DIGITS = 9
_MICROSECONDS = 6


def written(literal: Literal) -> tuple[str, Type | None]:
    """Return a literal as SQL, and its type.

    Raises:
        InvalidQueryError: SQL has no such literal.
    """
    kind = str(literal.WhichOneof("literal_type"))
    type_ = Type()
    match kind:
        case "null":
            if types.kind(literal.null) == "user_defined":
                return "NULL", None
            return _cast("NULL", literal.null), literal.null
        case "boolean":
            type_.bool.SetInParent()
            return ("TRUE" if literal.boolean else "FALSE"), type_
        case "i8" | "i16" | "i32" | "i64" if literal.type_variation_reference <= _UNSIGNED:
            return _whole(kind, literal)
        case "fp32" | "fp64":
            getattr(type_, kind).SetInParent()
            double = f"CAST('{getattr(literal, kind)!r}' AS DOUBLE)"
            return (double if kind == "fp64" else _cast(double, type_)), type_
        case "string":
            type_.string.SetInParent()
            return words.text(literal.string), type_
        case "var_char":
            type_.string.SetInParent()
            return words.text(literal.var_char.value), type_
        case "binary":
            type_.binary.SetInParent()
            return f"X'{literal.binary.hex()}'", type_
        case "date":
            type_.date.SetInParent()
            if not _DAYS[0] <= literal.date <= _DAYS[1]:
                raise refusal("a date is not in the years 1 to 9999")
            return f"DATE '{_EPOCH + datetime.timedelta(literal.date)}'", type_
        case "decimal":
            return _decimal(literal.decimal)
        case "precision_time" | "precision_timestamp" | "precision_timestamp_tz":
            found = getattr(literal, kind)
            getattr(type_, kind).precision = found.precision
            if types.arrow_name(type_) is None:
                raise unsupported(f"a moment of precision {found.precision}")
            is_short = kind == "precision_time" and found.precision < _MICROSECONDS
            width = "INT" if is_short else "BIGINT"
            return _cast(f"CAST('{found.value}' AS {width})", type_), type_
        case "interval_year_to_month" | "interval_day_to_second" | "interval_compound":
            return _interval(kind, literal), None
    raise unsupported(f"a literal of type {kind}")


def _cast(sql: str, type_: Type) -> str:
    made = types.cast(sql, type_)
    if made is None:
        raise unsupported(f"a value of type {types.kind(type_)}")
    return made


def _whole(kind: str, literal: Literal) -> tuple[str, Type]:
    value = getattr(literal, kind)
    type_ = Type()
    variation = literal.type_variation_reference
    getattr(type_, kind).type_variation_reference = variation
    if variation and value < 0:
        value += 1 << int(kind[1:])
    if kind == "i64" and not variation and value >= 0:
        return str(value), type_
    return _cast(f"'{value}'", type_), type_


def _decimal(decimal: Expression.Literal.Decimal) -> tuple[str, Type]:
    type_ = Type()
    type_.decimal.precision = decimal.precision
    type_.decimal.scale = decimal.scale
    number = int.from_bytes(decimal.value, "little", signed=True)
    if len(decimal.value) != 16 or len(str(abs(number))) > max(decimal.precision, 1):
        raise refusal("a decimal has more digits than its type")
    value = Decimal(number).scaleb(-decimal.scale, Context(prec=MAX_PREC))
    return _cast(f"'{value:f}'", type_), type_


def _interval(kind: str, literal: Literal) -> str:
    months = days = seconds = subseconds = precision = 0
    found = getattr(literal, kind)
    if kind != "interval_day_to_second":
        part = found.interval_year_to_month if kind == "interval_compound" else found
        months = part.years * 12 + part.months
    if kind != "interval_year_to_month":
        part = found.interval_day_to_second if kind == "interval_compound" else found
        days, seconds, subseconds = part.days, part.seconds, part.subseconds
        precision = part.precision
    if not 0 <= precision <= _SECOND_DIGITS:
        raise refusal(f"an interval has the precision {precision}")
    nanoseconds = seconds * 10**9 + subseconds * 10 ** (9 - precision)
    return f"INTERVAL '{months} months {days} days {nanoseconds} nanoseconds'"
