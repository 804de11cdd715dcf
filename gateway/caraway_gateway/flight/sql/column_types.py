"""The SQL types of columns, as drivers read them from the metadata of Arrow fields."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as kinds

_PREFIX = "ARROW:FLIGHT:SQL:"
_NAMES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (kinds.is_boolean, "BOOLEAN"),
    (kinds.is_int8, "TINYINT"),
    (kinds.is_int16, "SMALLINT"),
    (kinds.is_int32, "INT"),
    (kinds.is_int64, "BIGINT"),
    (kinds.is_uint8, "TINYINT UNSIGNED"),
    (kinds.is_uint16, "SMALLINT UNSIGNED"),
    (kinds.is_uint32, "INT UNSIGNED"),
    (kinds.is_uint64, "BIGINT UNSIGNED"),
    (kinds.is_float16, "REAL"),
    (kinds.is_float32, "REAL"),
    (kinds.is_float64, "DOUBLE"),
    (kinds.is_decimal, "DECIMAL"),
    (kinds.is_string, "VARCHAR"),
    (kinds.is_large_string, "VARCHAR"),
    (kinds.is_string_view, "VARCHAR"),
    (kinds.is_binary, "BYTEA"),
    (kinds.is_large_binary, "BYTEA"),
    (kinds.is_fixed_size_binary, "BYTEA"),
    (kinds.is_binary_view, "BYTEA"),
    (kinds.is_date, "DATE"),
    (kinds.is_time, "TIME"),
    (kinds.is_duration, "INTERVAL"),
    (kinds.is_interval, "INTERVAL"),
    (kinds.is_struct, "STRUCT"),
    (kinds.is_map, "MAP"),
    (kinds.is_null, "NULL"),
)
_IS_LIST = (
    kinds.is_list,
    kinds.is_large_list,
    kinds.is_fixed_size_list,
    kinds.is_list_view,
    kinds.is_large_list_view,
)


def name(kind: pa.DataType) -> str:
    """Return the name of a type in SQL, without its precision."""
    if kinds.is_dictionary(kind):
        return name(kind.value_type)
    if kinds.is_timestamp(kind):
        return "TIMESTAMP WITH TIME ZONE" if kind.tz else "TIMESTAMP"
    if any(is_list(kind) for is_list in _IS_LIST):
        return f"{name(kind.value_type)}[]"
    return next((sql for is_kind, sql in _NAMES if is_kind(kind)), str(kind))


def described(column: pa.Field) -> pa.Field:
    """Return a column with the metadata that Flight SQL defines for types."""
    metadata = {"TYPE_NAME": name(column.type)}
    if kinds.is_decimal(column.type):
        metadata |= {"PRECISION": str(column.type.precision), "SCALE": str(column.type.scale)}
    own = {_PREFIX + key: text for key, text in metadata.items()}
    return column.with_metadata({**(column.metadata or {}), **own})
