"""Gives the fields of NULL structs NULL, because DataFusion 55 reads them without the structs.

Arrow leaves open what the fields of a NULL struct hold. pyarrow writes 0 and empty texts there, and
`s['a']` would return them. NULL maps may have entries.
"""

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.tables.structs import has_structs

types = pa.types


def with_null_fields(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in which nullable fields of NULL structs are NULL; the values are shared."""
    if not any(has_structs(each.type) for each in batch.schema):
        return batch
    columns = [_mended(each) for each in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _mended(array: pa.Array) -> pa.Array:
    type_ = array.type
    if not has_structs(type_):
        return array
    if types.is_struct(type_):
        return _struct(array)
    if types.is_map(type_):
        array = _without_hidden_entries(array)
        parts = [array.keys, _mended(array.items)]
        return _list(array, pa.StructArray.from_arrays(parts, fields=list(type_.field(0).type)))
    if types.is_list(type_) or types.is_large_list(type_):
        return _list(array, _mended(array.values))
    if types.is_fixed_size_list(type_):
        return _fixed_list(array)
    return array


def _without_hidden_entries(array: pa.MapArray) -> pa.MapArray:
    """Return maps of which NULL ones have no entries, which `m['k']` would find."""
    if not array.null_count:
        return array
    offsets = array.offsets
    has_entries = pc.not_equal(offsets[1:], offsets[:-1])
    if not pc.any(pc.and_(array.is_null(), has_entries)).as_py():
        return array
    return array.take(pa.array(range(len(array)), pa.int64()))


def _struct(array: pa.StructArray) -> pa.Array:
    fields = list(array.type)
    if not fields:
        return array
    # `flatten` gives each field the NULLs of the struct.
    made = [
        masked if field.nullable else array.field(index)
        for index, (field, masked) in enumerate(zip(fields, array.flatten(), strict=True))
    ]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(list(map(_mended, made)), fields=fields, mask=mask)


def _list(array: pa.Array, values: pa.Array) -> pa.Array:
    """Return lists with other values. Their own buffers are a bitmap and offsets."""
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(
        array.type, len(array), buffers, array.null_count, array.offset, children=[values]
    )


def _fixed_list(array: pa.FixedSizeListArray) -> pa.Array:
    """Return such lists without an offset, with which the engine panics if they hold structs."""
    size = array.type.list_size
    values = _mended(array.values.slice(array.offset * size, len(array) * size))
    nulls = array.is_valid().buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(array.type, len(array), [nulls], children=[values])
