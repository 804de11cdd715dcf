"""Types of rows that are written for Iceberg: each has an Iceberg type and the same values."""

from collections.abc import Callable

import pyarrow as pa

from caraway_plugins.iceberg import column_types

types = pa.types
_MICROSECONDS = pa.timestamp("us")
_REPLACED: dict[pa.DataType, pa.DataType] = {
    pa.null(): pa.string(),
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): _MICROSECONDS,
    pa.time32("s"): pa.time64("us"),
    pa.time32("ms"): pa.time64("us"),
    pa.time64("ns"): pa.time64("us"),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


def columns(schema: pa.Schema) -> pa.Schema:
    """Return the columns that rows are cast to; a type that nothing replaces stays."""
    return pa.schema([pa.field(each.name, written(each.type)) for each in schema])


def written(type_: pa.DataType) -> pa.DataType:
    """Return the type that values of a type are written as.

    Moments are cut off at microseconds, since version 2 of Iceberg has no finer ones.
    """
    if (found := _REPLACED.get(type_)) is not None:
        return found
    return next((make(type_) for applies, make in _RULES if applies(type_)), type_)


def _moment(type_: pa.DataType) -> pa.DataType:
    return _MICROSECONDS if type_.tz is None else pa.timestamp("us", "UTC")


def _decimal(type_: pa.DataType) -> pa.DataType:
    return pa.decimal128(type_.precision, type_.scale) if type_.precision <= 38 else type_


def _struct(type_: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field(each.name, written(each.type)) for each in type_])


_RULES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], pa.DataType]], ...] = (
    (types.is_timestamp, _moment),
    (types.is_decimal, _decimal),
    (types.is_dictionary, lambda type_: written(type_.value_type)),
    (types.is_struct, _struct),
    (types.is_map, lambda type_: pa.map_(written(type_.key_type), written(type_.item_type))),
    (column_types.is_list, lambda type_: pa.list_(written(type_.value_type))),
)
