"""Converts the literals of a plan to Python values."""

import datetime as dt
import decimal
from typing import Any

from substrait.algebra_pb2 import Expression

UNKNOWN = object()
"""Marks an expression that is not a literal, or has no value in Python."""
_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECONDS = 6


def value(expression: Expression) -> Any:
    """Return the value of a literal: None for NULL, and UNKNOWN for anything else."""
    if expression.WhichOneof("rex_type") != "literal":
        return UNKNOWN
    literal = expression.literal
    try:
        return _value(literal, str(literal.WhichOneof("literal_type")))
    except (OverflowError, ValueError):
        return UNKNOWN


def _value(literal: Any, kind: str) -> Any:
    match kind:
        case "null":
            return None
        case "i8" | "i16" | "i32" | "i64":
            number = int(getattr(literal, kind))
            # Unsigned integers are stored as signed ones, where the largest are negative.
            return UNKNOWN if literal.type_variation_reference and number < 0 else number
        case "boolean" | "fp64" | "string" | "binary":
            return getattr(literal, kind)
        case "date":
            return _EPOCH.date() + dt.timedelta(days=literal.date)
        case "decimal":
            unscaled = int.from_bytes(literal.decimal.value, "little", signed=True)
            digits = decimal.Context(prec=decimal.MAX_PREC)
            return decimal.Decimal(unscaled).scaleb(-literal.decimal.scale, digits)
        case "precision_timestamp":
            return _moment(literal.precision_timestamp)
        case "precision_timestamp_tz":
            moment = _moment(literal.precision_timestamp_tz)
            return moment if moment is UNKNOWN else moment.replace(tzinfo=dt.UTC)
    return UNKNOWN


def _moment(stamp: Any) -> Any:
    shift = _MICROSECONDS - stamp.precision
    if shift >= 0:
        return _EPOCH + dt.timedelta(microseconds=stamp.value * 10**shift)
    microseconds, rest = divmod(stamp.value, 10**-shift)
    return UNKNOWN if rest else _EPOCH + dt.timedelta(microseconds=microseconds)
