"""The names of partitions: the values of their terms as text, the same in every process.

A name is a JSON array with a value for each term: the number of a bucket, or what a column or an
expression holds. Values that JSON has no form for are texts as Arrow writes them; bytes are in
hexadecimal digits. So equal values of one type have equal names, and no two others have.
"""

import json
import math
from collections.abc import Sequence

import pyarrow as pa

Value = None | bool | int | float | str
Values = tuple[Value, ...]
_BINARY = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)
_TEXTUAL = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_decimal,
    pa.types.is_temporal,
)


def name_of(values: Sequence[Value]) -> str:
    """Return the name of the partition whose terms have these values."""
    return json.dumps(list(values), ensure_ascii=False, separators=(",", ":"))


def values_of(name: str) -> Values:
    """Return the values in a partition name; the inverse of `name_of`.

    Raises:
        ValueError: it is not the name of a partition.
    """
    values = json.loads(name)
    if not isinstance(values, list):
        raise ValueError(f"'{name}' names no partition")
    return tuple(values)


def plain_values(column: pa.Array) -> list[Value]:
    """Return the values of a column in the form that partition names use.

    Raises:
        ValueError: values of this type cannot name partitions.
    """
    type_ = column.type
    if pa.types.is_dictionary(type_):
        return plain_values(column.dictionary_decode())
    if pa.types.is_null(type_) or pa.types.is_boolean(type_) or pa.types.is_integer(type_):
        return list(column.to_pylist())
    if pa.types.is_floating(type_):
        return [_plain_float(each) for each in column.to_pylist()]
    if any(test(type_) for test in _BINARY):
        return [None if each is None else each.hex() for each in column.to_pylist()]
    if any(test(type_) for test in _TEXTUAL):
        return list(_texts(column).to_pylist())
    raise ValueError(f"values of type {type_} cannot name partitions; choose another column")


def _texts(column: pa.Array) -> pa.Array:
    if pa.types.is_duration(column.type):
        return column.cast(pa.int64()).cast(pa.string())
    return column.cast(pa.string())


def _plain_float(value: float | None) -> Value:
    if value is None or math.isfinite(value):
        # Negative zero equals positive zero, so both belong to one partition.
        return value if value is None else value + 0.0
    return str(value)
