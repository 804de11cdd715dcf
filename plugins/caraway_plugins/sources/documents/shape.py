"""The columns of documents: objects of a database that declares no fields."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_plugins.sources import schemas
from caraway_plugins.sources.documents.numbers import ExactNumber

types = pa.types
_MOST_COLUMNS = 5_000
_MOST_FIELDS = 200
"""An object with more fields is a dictionary: its fields are no columns."""
_MOST_DEPTH = 16
MOMENT = pa.timestamp("ms", "UTC")


class _MixedError(Exception):
    """No type of Arrow holds the values."""


@dataclass(frozen=True, slots=True)
class DocumentShape:
    """Columns. Those in `texts` take values of every type: texts as they are, others as JSON."""

    schema: pa.Schema
    texts: frozenset[str] = frozenset()


def declared_shape(fields: Sequence[pa.Field]) -> DocumentShape:
    """Return the columns that the manifest declares."""
    texts = (each.name for each in fields if types.is_string(each.type))
    return DocumentShape(pa.schema(fields), frozenset(texts))


def shape_of(documents: Iterable[Mapping[str, object]], title: str) -> DocumentShape:
    """Return the columns of documents, in the order of their first appearance.

    Raises:
        DatasetError: there are too many.
    """
    fields: dict[str, pa.DataType] = {}
    texts: set[str] = set()
    for document in documents:
        for name, value in document.items():
            if name in texts:
                continue
            try:
                fields[name] = _united(fields.get(name, pa.null()), _type(value))
            except _MixedError:
                fields[name] = pa.string()
                texts.add(name)
    if len(fields) > _MOST_COLUMNS:
        raise DatasetError(
            "schema",
            f"'{title}' has more than {_MOST_COLUMNS:,} columns; declare those to read under "
            "`columns`",
        )
    for name, type_ in fields.items():
        if types.is_null(type_) or _fields_of(type_) > _MOST_FIELDS:
            texts.add(name)
    # A column without any value is text, too, so that later values fit.
    columns = [
        pa.field(name, pa.string() if name in texts else _widest(type_))
        for name, type_ in fields.items()
    ]
    return DocumentShape(schemas.finished(pa.schema(columns)), frozenset(texts))


def _type(value: object, depth: int = 0) -> pa.DataType:
    match value:
        case None:
            return pa.null()
        case bool():
            return pa.bool_()
        case int():
            return _whole(value)
        case float():
            return pa.float64()
        case str():
            return pa.string()
        case bytes():
            return pa.binary()
        case datetime():
            return MOMENT
        case Decimal() if value.is_finite():
            return _number(value)
        case list() if depth < _MOST_DEPTH:
            item = pa.null()
            for each in value:
                item = _united(item, _type(each, depth + 1))
            return pa.list_(item)
        case dict() if depth < _MOST_DEPTH:
            inner = [pa.field(name, _type(each, depth + 1)) for name, each in value.items()]
            # Neither Arrow files nor SQL support a struct without fields.
            return pa.struct(inner) if inner else pa.null()
    raise _MixedError


def _whole(value: int) -> pa.DataType:
    return pa.int64() if -(2**63) <= value < 2**63 else _decimal(len(str(abs(value))), 0)


def _number(value: Decimal) -> pa.DataType:
    if isinstance(value, ExactNumber):
        if value == value.to_integral_value():
            return _whole(int(value))
        if value.is_double:
            return pa.float64()
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    return _decimal(max(len(digits) + exponent, 0) + scale, scale)


def _decimal(precision: int, scale: int) -> pa.DataType:
    if precision > 76:
        raise _MixedError
    digits = max(precision, 1)
    return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)


def _united(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if _has_decimal(left) != _has_decimal(right) and (_has_double(left) or _has_double(right)):
        raise _MixedError  # A double would lose digits.
    united = schemas.widened(left, right)
    if united is None:
        raise _MixedError
    return united


def _has_decimal(type_: pa.DataType) -> bool:
    return bool(types.is_decimal(type_)) or any(map(_has_decimal, _inner(type_)))


def _has_double(type_: pa.DataType) -> bool:
    return bool(types.is_floating(type_)) or any(map(_has_double, _inner(type_)))


def _inner(type_: pa.DataType) -> Sequence[pa.DataType]:
    return [type_.field(number).type for number in range(type_.num_fields)]


def _fields_of(type_: pa.DataType) -> int:
    return 1 + sum(map(_fields_of, _inner(type_)))


def _widest(type_: pa.DataType) -> pa.DataType:
    """Return a type whose decimals have as many digits as fit."""
    if types.is_decimal(type_):
        is_short = type_.precision <= 38
        return pa.decimal128(38, type_.scale) if is_short else pa.decimal256(76, type_.scale)
    if types.is_struct(type_):
        return pa.struct([pa.field(each.name, _widest(each.type)) for each in type_])
    return pa.list_(_widest(type_.value_type)) if types.is_list(type_) else type_
