"""Values of BSON as values of Python that become rows."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from bson import json_util
from bson.binary import Binary
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.objectid import ObjectId

from caraway_plugins.sources.documents import numbers


def values_of(document: Mapping[str, object]) -> dict[str, Any]:
    """Return the values of a document by their names."""
    return {name: value_of(value) for name, value in document.items()}


def value_of(value: object) -> object:
    """Return a value; kinds that only MongoDB has are objects of its extended JSON."""
    convert = _KINDS.get(type(value))
    if convert is not None:
        return convert(value)
    if isinstance(value, Mapping):
        return values_of(value)
    extended = json_util.default(value)
    return values_of(extended) if isinstance(extended, Mapping) else str(value)


def _same(value: object) -> object:
    return value


def _decimal(value: Decimal128) -> Decimal:
    return value.to_decimal()


def _list(value: list[object]) -> list[Any]:
    return [value_of(each) for each in value]


_KINDS: Mapping[type, Callable[[Any], Any]] = {
    str: _same,
    float: _same,
    bool: _same,
    type(None): _same,
    bytes: _same,
    datetime: _same,
    int: numbers.exact,
    Int64: numbers.exact,
    DatetimeMS: int,  # The year is not one of Python; a column of moments refuses it.
    ObjectId: str,
    Binary: bytes,
    Decimal128: _decimal,
    list: _list,
    dict: values_of,
}
