"""Dates and times as numbers: Python's own have no year after 9999, and no nanoseconds."""

import pyarrow as pa

types = pa.types


def as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose dates, times and durations are numbers, which are in the same order."""
    plain = _type(column.type)
    return column if plain.equals(column.type) else column.cast(plain)


def _type(kind: pa.DataType) -> pa.DataType:
    if types.is_date32(kind) or types.is_time32(kind):
        return pa.int32()
    if types.is_temporal(kind) and not types.is_interval(kind):
        return pa.int64()
    if types.is_dictionary(kind):
        inner = _type(kind.value_type)
        return kind if inner.equals(kind.value_type) else inner
    if types.is_fixed_size_list(kind):
        return pa.list_(_field(kind.value_field), kind.list_size)
    if types.is_large_list(kind):
        return pa.large_list(_field(kind.value_field))
    if types.is_list(kind):
        return pa.list_(_field(kind.value_field))
    if types.is_struct(kind):
        return pa.struct([_field(kind.field(place)) for place in range(kind.num_fields)])
    if types.is_map(kind):
        return pa.map_(_field(kind.key_field), _field(kind.item_field))
    return kind


def _field(field: pa.Field) -> pa.Field:
    return field.with_type(_type(field.type))
