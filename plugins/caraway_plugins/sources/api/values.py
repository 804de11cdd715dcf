"""Values of JSON as values of Arrow's types. A value that does not fit is an error, never another
value."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from types import NoneType
from typing import Any

import pyarrow as pa

from caraway_core.errors import DatasetError

types = pa.types
Fit = Callable[[Any], Any]
"""Makes a value of Python that Arrow takes for a type; raises ValueError if it does not fit."""


def batch(
    rows: Sequence[Mapping[str, Any]], schema: pa.Schema, texts: frozenset[str], title: str
) -> pa.RecordBatch:
    """Return rows with the columns of a schema; other fields are left out, missing ones are NULL.

    A column in `texts` takes values of every kind; those that are not texts are there as JSON.

    Raises:
        DatasetError: a value does not fit its column.
    """
    given = {field.name: [row.get(field.name) for row in rows] for field in schema}
    return batch_of(given, schema, texts, title)


def batch_of(
    given: Mapping[str, Sequence[object] | pa.Array],
    schema: pa.Schema,
    texts: frozenset[str],
    title: str,
) -> pa.RecordBatch:
    """Do as `batch` with the values of each column; arrays are those of the result.

    Raises: as `batch`.
    """
    columns = []
    for field in schema:
        column = given[field.name]
        if isinstance(column, pa.Array):
            columns.append(column)
            continue
        is_text = field.name in texts and types.is_string(field.type)
        try:
            columns.append(_column(column, field.type, _as_text if is_text else _fit(field.type)))
        except (ValueError, TypeError, OverflowError, InvalidOperation, pa.ArrowException) as exc:
            said = f" ({exc})" if type(exc) is ValueError else ""
            raise DatasetError(
                "schema",
                f"'{title}' has a value in column '{field.name}' that does not fit {field.type}"
                f"{said}; declare a type that fits all its values under `columns`, for example "
                "text",
            ) from exc
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(given: Sequence[object], type_: pa.DataType, fit: Fit) -> pa.Array:
    kinds = next((kinds for applies, kinds in _EXACT if applies(type_)), None)
    if kinds is not None and kinds.issuperset(map(type, given)):
        try:
            return pa.array(given, type_)  # Ten times as fast, and exact for values of these kinds.
        except (pa.ArrowException, OverflowError):
            pass  # A value is too large for it, and may still fit.
    if types.is_struct(type_) and type_.num_fields:
        return _structs([_fitted(_object, value) for value in given], type_)
    return pa.array([_fitted(fit, value) for value in given], type_)


def _structs(given: Sequence[Mapping[str, object] | None], type_: pa.StructType) -> pa.Array:
    fields = [
        _column(
            [None if each is None else each.get(field.name) for each in given],
            field.type,
            _fit(field.type),
        )
        for field in type_
    ]
    is_null = pa.array([each is None for each in given])
    return pa.StructArray.from_arrays(fields, fields=list(type_), mask=is_null)


def _fitted(fit: Fit, value: object) -> Any:
    return None if value is None else fit(value)


def _fit(type_: pa.DataType) -> Fit:
    for applies, fit in _FITS:
        if applies(type_):
            return fit
    if types.is_timestamp(type_):
        return _moment if type_.tz else _local
    if types.is_struct(type_):
        return _struct({each.name: _fit(each.type) for each in type_})
    if types.is_list(type_):
        return _list(_fit(type_.value_type))
    if types.is_map(type_) and types.is_string(type_.key_type):
        return _map(_fit(type_.item_type))
    return _never


def _text(value: object) -> str:
    text: str = _of(value, str)
    return text


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _integer(value: object) -> int:
    if isinstance(value, float | Decimal) and value == int(value):
        return int(value)
    whole: int = _of(value, int)
    return whole


def _double(value: object) -> float:
    return float(_of(value, int, float, Decimal))


def _decimal(value: object) -> Decimal:
    decimal = Decimal(_of(value, int, str, Decimal))
    if not decimal.is_finite():
        raise ValueError("it is not a number")
    return decimal


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"it is {_kind(value)}")
    return value


def _day(value: object) -> date:
    return date.fromisoformat(_of(value, str))


def _time(value: object) -> time:
    return time.fromisoformat(_of(value, str))


def _moment(value: object) -> datetime:
    found = value if isinstance(value, datetime) else datetime.fromisoformat(_of(value, str))
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _local(value: object) -> datetime:
    return _moment(value).astimezone(UTC).replace(tzinfo=None)


def _bytes(value: object) -> bytes:
    content: bytes = _of(value, bytes)
    return content


def _object(value: object) -> Mapping[str, Any]:
    found: Mapping[str, Any] = _of(value, dict)
    return found


def _struct(fields: Mapping[str, Fit]) -> Fit:
    def fit(value: object) -> dict[str, Any]:
        given = _of(value, dict)
        return {name: _fitted(each, given.get(name)) for name, each in fields.items()}

    return fit


def _list(item: Fit) -> Fit:
    return lambda value: [_fitted(item, each) for each in _of(value, list)]


def _map(item: Fit) -> Fit:
    return lambda value: [(key, _fitted(item, each)) for key, each in _of(value, dict).items()]


def _never(value: object) -> object:
    raise ValueError("JSON has no values of this type")


def _of(value: object, *kinds: type) -> Any:
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise ValueError(f"it is {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "true or false"
        case int():
            return "a number"
        case float() | Decimal():
            return "a number with a point"
        case str():
            return "text"
        case list():
            return "an array"
        case bytes():
            return "bytes"
        case datetime():
            return "a moment"
        case _:
            return "an object"


_FITS: Sequence[tuple[Callable[[pa.DataType], bool], Fit]] = (
    (types.is_string, _text),
    (types.is_integer, _integer),
    (types.is_floating, _double),
    (types.is_decimal, _decimal),
    (types.is_boolean, _boolean),
    (types.is_date, _day),
    (types.is_time, _time),
    (types.is_binary, _bytes),
)
_EXACT: Sequence[tuple[Callable[[pa.DataType], bool], frozenset[type]]] = (
    (types.is_string, frozenset({str, NoneType})),
    (types.is_integer, frozenset({int, NoneType})),
    (types.is_float64, frozenset({float, int, NoneType})),
    (types.is_boolean, frozenset({bool, NoneType})),
)
"""Kinds of values that Arrow converts exactly, or refuses."""
