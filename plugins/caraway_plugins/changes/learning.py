"""Columns of a dataset that declares none: those of its first events.

The schema that an event carries in Kafka Connect's format gives the types. Without one, the values
of all rows do: nested values become text in JSON, and a column of NULLs only becomes text.
"""

import datetime as dt
import decimal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from caraway_core.changes import OFFSET, OP
from caraway_plugins.changes.target import BadChangesError, ChangeTarget

_MOST_COLUMNS = 5_000
_MOST_DIGITS = 38
_INT_64 = range(-(2**63), 2**63)
_BY_NAME: Mapping[str, pa.DataType] = {
    "io.debezium.time.Date": pa.date32(),
    "io.debezium.time.Timestamp": pa.timestamp("ms"),
    "io.debezium.time.MicroTimestamp": pa.timestamp("us"),
    "io.debezium.time.NanoTimestamp": pa.timestamp("ns"),
    "io.debezium.time.ZonedTimestamp": pa.timestamp("us", "UTC"),
    "io.debezium.time.Time": pa.time32("ms"),
    "io.debezium.time.MicroTime": pa.time64("us"),
    "io.debezium.time.NanoTime": pa.time64("ns"),
    "org.apache.kafka.connect.data.Date": pa.date32(),
    "org.apache.kafka.connect.data.Timestamp": pa.timestamp("ms"),
    "org.apache.kafka.connect.data.Time": pa.time32("ms"),
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_BY_KIND: Mapping[str, pa.DataType] = {
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(),
    "float": pa.float32(), "float32": pa.float32(), "double": pa.float64(),
    "float64": pa.float64(), "boolean": pa.bool_(), "bytes": pa.binary(),
}  # fmt: skip
_BY_VALUE: Mapping[type, pa.DataType] = {
    bool: pa.bool_(), float: pa.float64(), bytes: pa.binary(), dt.date: pa.date32(),
    dt.time: pa.time64("us"),
}  # fmt: skip
Read = Callable[[str], Any]


def is_due(target: ChangeTarget) -> bool:
    """Return whether the columns of a dataset come from the next events."""
    return target.is_learned and not target.schema.names


def target_of(
    events: Sequence[object], target: ChangeTarget, read: Read, *, has_decimals: bool = False
) -> ChangeTarget:
    """Return the target with the columns of these events, if it has none yet.

    It still has none if there are only deletes and truncations without a schema. `read` parses rows
    that are written as text. With `has_decimals`, decimals are told from doubles.

    Raises:
        BadChangesError: the events have no usable columns.
    """
    if not is_due(target):
        return target
    fields = next(filter(None, map(_carried, events)), None)
    if fields is None:
        fields = _inferred(_rows(events, read), has_decimals)
    if len(fields) > _MOST_COLUMNS:
        raise BadChangesError(f"the events have more than {_MOST_COLUMNS:,} columns")
    for name in fields:
        if name in (OP, OFFSET):
            raise BadChangesError(f"a column of a dataset cannot have the name '{name}'")
    return replace(target, schema=pa.schema(list(fields.items())))


def _carried(event: object) -> dict[str, pa.DataType] | None:
    """Return the columns in the schema next to an event, if it has one."""
    schema = event.get("schema") if isinstance(event, dict) else None
    for each in _fields(schema):
        if each.get("field") == "after":
            return {field["field"]: _type(field) for field in _fields(each)} or None
    return None


def _fields(schema: object) -> Iterable[Mapping[str, Any]]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    for each in fields if isinstance(fields, list) else ():
        if isinstance(each, dict) and isinstance(each.get("field"), str):
            yield each


def _type(schema: Mapping[str, object]) -> pa.DataType:
    kind, name = schema.get("type"), schema.get("name")
    if name == _DECIMAL:
        return _decimal(schema.get("parameters"))
    if isinstance(name, str) and name in _BY_NAME:
        return _BY_NAME[name]
    return _BY_KIND.get(kind, pa.string()) if isinstance(kind, str) else pa.string()


def _decimal(parameters: object) -> pa.DataType:
    given = parameters if isinstance(parameters, dict) else {}
    try:
        scale = int(given.get("scale", 0))
        digits = int(given.get("connect.decimal.precision", _MOST_DIGITS))
        return pa.decimal128(min(max(digits, 1), _MOST_DIGITS), scale)
    except (TypeError, ValueError, pa.ArrowException):
        return pa.string()


def _rows(events: Sequence[object], read: Read) -> Iterable[Mapping[str, Any]]:
    """Yield the whole rows of events; what is malformed is refused by those who read it."""
    for event in events:
        inner = event.get("payload") if isinstance(event, dict) and "op" not in event else event
        after = inner.get("after") if isinstance(inner, dict) else None
        if isinstance(after, str):
            try:
                after = read(after)
            except ValueError:
                continue
        if isinstance(after, dict):
            yield after


def _inferred(rows: Iterable[Mapping[str, object]], has_decimals: bool) -> dict[str, pa.DataType]:
    found: dict[str, pa.DataType | None] = {}
    for row in rows:
        for name, value in row.items():
            own = None if value is None else _of_value(value, has_decimals)
            found[name] = _united(found.get(name), own)
    return {name: pa.string() if type_ is None else type_ for name, type_ in found.items()}


def _of_value(value: object, has_decimals: bool) -> pa.DataType:
    if type(value) is int:
        return pa.int64() if value in _INT_64 else pa.decimal128(_MOST_DIGITS, 0)
    if type(value) is decimal.Decimal:
        exponent = value.as_tuple().exponent
        if has_decimals and isinstance(exponent, int) and -exponent <= _MOST_DIGITS:
            return pa.decimal128(_MOST_DIGITS, max(-exponent, 0))
        return pa.float64()
    if isinstance(value, dt.datetime):
        return pa.timestamp("us", "UTC" if value.tzinfo else None)
    return _BY_VALUE.get(type(value), pa.string())


def _united(left: pa.DataType | None, right: pa.DataType | None) -> pa.DataType | None:
    if left is None or right is None or left == right:
        return left if right is None else right
    if _is_number(left) and _is_number(right):
        is_double = pa.float64() in (left, right)
        scales = [each.scale for each in (left, right) if pa.types.is_decimal(each)]
        return pa.float64() if is_double else pa.decimal128(_MOST_DIGITS, max(scales))
    return pa.string()


def _is_number(type_: pa.DataType) -> bool:
    return type_ in (pa.int64(), pa.float64()) or bool(pa.types.is_decimal(type_))
