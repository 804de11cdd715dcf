"""Converts single values of events to values of their column, exactly or with an error.

Used for values that Arrow does not convert in bulk, and to find the value that Arrow rejected.
"""

import base64
import binascii
import datetime as dt
import decimal
import math
import re
from collections.abc import Callable
from typing import Any

import orjson
import pyarrow as pa

from caraway_plugins.changes.meanings import Meaning

UNAVAILABLE = "__debezium_unavailable_value"
"""The placeholder for a large value that PostgreSQL did not log because it did not change."""
_UNAVAILABLE = frozenset(
    {UNAVAILABLE, base64.b64encode(UNAVAILABLE.encode()).decode(), UNAVAILABLE.encode()}
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,80}")
_NUMBER = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?")
_SPECIAL = {"nan", "infinity", "-infinity", "inf", "-inf"}
_FRACTION = re.compile(r"([^:+]*:[0-9]{2}:[0-9]{2})[.,]([0-9]+)(.*)")
_BITS_64 = range(-(2**63), 2**64)
_EPOCH = dt.datetime(1970, 1, 1)
_DAY = dt.timedelta(days=1)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_UNIT_OF_MEANING = {
    "io.debezium.time.Timestamp": "ms",
    "io.debezium.time.MicroTimestamp": "us",
    "io.debezium.time.NanoTimestamp": "ns",
    "org.apache.kafka.connect.data.Timestamp": "ms",
    "io.debezium.time.Time": "ms",
    "io.debezium.time.MicroTime": "us",
    "io.debezium.time.NanoTime": "ns",
    "org.apache.kafka.connect.data.Time": "ms",
}
_WORDS = {
    bool: "a boolean", int: "an integer", float: "a number", str: "a string", bytes: "bytes",
    list: "a list", dict: "an object", decimal.Decimal: "a decimal",
    dt.datetime: "a timestamp", dt.date: "a date", dt.time: "a time",
}  # fmt: skip

One = Callable[[Any], Any]


class UnfitError(Exception):
    """A value that the column does not accept; the message says what is expected."""


class UnloggedError(UnfitError):
    """A placeholder for a value that the database did not log."""

    def __init__(self) -> None:
        super().__init__(
            "its database did not log the value, because it did not change; "
            "set REPLICA IDENTITY FULL on the table"
        )


def kind(value: object) -> str:
    """Return the type of a value for messages; the value itself may be confidential."""
    return _WORDS.get(type(value), type(value).__name__)


def unit_of(type_: pa.DataType, meaning: Meaning) -> str:
    """Return the unit of numbers in a time or timestamp column.

    Without a schema it is the unit of the column, because Debezium chooses its unit by precision.
    Debezium does not use seconds; it writes milliseconds instead.
    """
    known = _UNIT_OF_MEANING.get(meaning.name)
    if known is not None:
        return known
    return "ms" if type_.unit == "s" else str(type_.unit)


def per_second(unit: str) -> int:
    """Return how many of the unit make a second."""
    return _PER_SECOND[unit]


def reader(type_: pa.DataType, meaning: Meaning) -> One:
    """Return a function that converts one non-None value for a column of this type.

    The function raises UnfitError for a value of another kind.
    """
    types = pa.types
    if types.is_integer(type_):
        return _integer
    if types.is_floating(type_):
        return _float
    if types.is_decimal(type_):
        return lambda value: _decimal(value, meaning)
    if types.is_boolean(type_):
        return _boolean
    if is_text(type_):
        return _text
    if is_binary(type_):
        return _binary
    if types.is_date(type_):
        return lambda value: _days(value, meaning)
    if types.is_timestamp(type_):
        unit = unit_of(type_, meaning)
        return lambda value: _timestamp(value, unit, type_.unit)
    if types.is_time(type_):
        unit = unit_of(type_, meaning)
        return lambda value: _time(value, unit, type_.unit)
    return lambda value: value


def is_text(type_: pa.DataType) -> bool:
    """Return whether the type is one of the string types."""
    types = pa.types
    return bool(
        types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_)
    )


def is_binary(type_: pa.DataType) -> bool:
    """Return whether the type is one of the binary types."""
    types = pa.types
    return bool(
        types.is_binary(type_)
        or types.is_large_binary(type_)
        or types.is_binary_view(type_)
        or types.is_fixed_size_binary(type_)
    )


def _integer(value: object) -> int:
    if type(value) is int:
        return value
    if type(value) is str and _INTEGER.fullmatch(value):
        return int(value)
    raise UnfitError("an integer is expected, as a number or a string of digits")


def _float(value: Any) -> float:
    if type(value) is float or (type(value) is str and value.lower() in _SPECIAL):
        return float(value)
    if type(value) in (int, decimal.Decimal) or (type(value) is str and _NUMBER.fullmatch(value)):
        found = float(value)
        if math.isinf(found):
            raise UnfitError("a number in the range of a double is expected")
        return found
    raise UnfitError("a number is expected")


def _boolean(value: object) -> bool:
    if type(value) is bool:
        return value
    # MySQL's booleans are numbers, and some producers write all values as strings.
    if type(value) is int and value in (0, 1):
        return bool(value)
    if type(value) is str and value in ("true", "false"):
        return value == "true"
    raise UnfitError("true or false is expected")


def _text(value: object) -> str:
    if type(value) is str:
        if value in _UNAVAILABLE:
            raise UnloggedError
        return value
    if isinstance(value, dict | list):
        try:
            return orjson.dumps(value, default=_plain).decode()
        except TypeError:  # It may have integers of more than 64 bits.
            return _with_long_numbers(value)
    if hasattr(value, "hex") and hasattr(value, "urn"):
        return str(value)  # Avro's UUIDs are decoded to UUID objects.
    raise UnfitError("a string is expected")


def _with_long_numbers(value: object) -> str:
    try:
        return orjson.dumps(_with_long_integers(value), default=_plain).decode()
    except (RecursionError, TypeError) as exc:
        raise UnfitError("a value that is nested less deeply is expected") from exc


def has_doubles(value: object) -> bool:
    """Return whether there are doubles inside a value, which may have been longer numbers."""
    if isinstance(value, dict):
        return any(map(has_doubles, value.values()))
    if isinstance(value, list):
        return any(map(has_doubles, value))
    return type(value) is float


def _plain(value: object) -> object:
    if isinstance(value, decimal.Decimal):
        return orjson.Fragment(str(value)) if value.is_finite() else None
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _with_long_integers(value: object) -> object:
    if isinstance(value, dict):
        return {name: _with_long_integers(each) for name, each in value.items()}
    if isinstance(value, list):
        return list(map(_with_long_integers, value))
    is_long = type(value) is int and value not in _BITS_64
    return orjson.Fragment(str(value)) if is_long else value


def _binary(value: object) -> bytes:
    if isinstance(value, bytes | str) and value in _UNAVAILABLE:
        raise UnloggedError
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            pass
    raise UnfitError("bytes are expected, in Base64")


def _decimal(value: Any, meaning: Meaning) -> decimal.Decimal:
    if type(value) in (int, decimal.Decimal):
        return decimal.Decimal(value)
    if type(value) is float:
        return decimal.Decimal(repr(value))
    if isinstance(value, dict) and value.keys() == {"scale", "value"}:
        return _unscaled(value["value"], value["scale"])
    if isinstance(value, str | bytes) and meaning.scale is not None:
        return _unscaled(value, meaning.scale)
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return decimal.Decimal(value)
    raise UnfitError(
        "a decimal is expected, as a number or a string of digits; "
        "Base64 needs a schema that gives the scale"
    )


def _unscaled(value: object, scale: object) -> decimal.Decimal:
    """Decode Connect's big-endian two's complement, which is Base64 in JSON."""
    if type(scale) is not int or not -1000 <= scale <= 1000:
        raise UnfitError("a decimal is expected, with its scale as an integer")
    number = int.from_bytes(_binary(value), "big", signed=True)
    if number.bit_length() > 256:
        raise UnfitError("a decimal of at most 76 digits is expected")
    return decimal.Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale))


def _days(value: object, meaning: Meaning) -> dt.date | int:
    if type(value) is int:
        per_day = _PER_SECOND.get(_UNIT_OF_MEANING.get(meaning.name, ""), 0) * 86_400
        if per_day and value % per_day:
            raise UnfitError("a date is expected, without a time of day")
        return value // per_day if per_day else value
    if isinstance(value, str):
        moment = _moment(value.removesuffix("Z") if len(value) == 11 else value)
        if moment is not None and moment[0] % 86_400 == 0 and not moment[1]:
            return moment[0] // 86_400
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    raise UnfitError("a date is expected, as days since 1970 or as YYYY-MM-DD")


def _timestamp(value: object, unit: str, wanted: str) -> int:
    if type(value) is int:
        return value * _PER_SECOND[wanted] // _PER_SECOND[unit]
    found = None
    if isinstance(value, str):
        found = _moment(value)
    elif isinstance(value, dt.datetime):
        found = _parts(value)
    if found is None:
        raise UnfitError(f"a timestamp is expected, as {_UNITS[unit]} since 1970 or in ISO 8601")
    return found[0] * _PER_SECOND[wanted] + found[1] * _PER_SECOND[wanted] // 10**9


_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}


def _moment(text: str) -> tuple[int, int] | None:
    """Parse ISO 8601 into seconds since 1970 and nanoseconds; without a zone it is UTC."""
    nanos = 0
    # Python's parser stops at microseconds.
    if match := _FRACTION.fullmatch(text):
        text, nanos = match[1] + match[3], int(match[2].ljust(9, "0")[:9])
    try:
        seconds, rest = _parts(dt.datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None
    return seconds, nanos or rest


def _parts(moment: dt.datetime) -> tuple[int, int]:
    if moment.tzinfo is not None:
        moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    passed = moment - _EPOCH
    return passed.days * 86_400 + passed.seconds, passed.microseconds * 1000


def _time(value: object, unit: str, wanted: str) -> int:
    if type(value) is int:
        if 0 <= value < 86_400 * _PER_SECOND[unit]:
            return value * _PER_SECOND[wanted] // _PER_SECOND[unit]
    elif isinstance(value, str) and (moment := _moment(f"1970-01-01T{value}")) is not None:
        return _of_day(moment, wanted)
    elif isinstance(value, dt.time):
        return _of_day(_parts(dt.datetime.combine(_EPOCH, value)), wanted)
    raise UnfitError(f"a time of day is expected, as {_UNITS[unit]} or as HH:MM:SS")


def _of_day(found: tuple[int, int], wanted: str) -> int:
    return found[0] % 86_400 * _PER_SECOND[wanted] + found[1] * _PER_SECOND[wanted] // 10**9
