"""Converts columns for formats that support fewer types than Arrow."""

import io
from collections.abc import Callable
from typing import Any

import arro3.io
import pyarrow as pa

Conversion = Callable[[pa.RecordBatch], pa.RecordBatch]


def for_json(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert map keys to text, because the keys of a JSON object are text."""
    return _mapped(batch, _needs_text_keys, _with_text_keys)


def to_json(schema: pa.Schema) -> Conversion:
    """Return what converts the batches of a schema as `for_json` does."""
    is_needed = any(_needs_text_keys(kind) for kind in schema.types)
    return for_json if is_needed else lambda batch: batch


def for_csv(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert nested columns to JSON text, because a CSV cell has one value."""
    return _mapped(batch, pa.types.is_nested, _as_json_text)


def without_views(schema: pa.Schema) -> pa.Schema:
    """Replace string and binary views, which many Arrow readers do not support yet."""
    return pa.schema([field.with_type(_plain(field.type)) for field in schema], schema.metadata)


def _mapped(batch: pa.RecordBatch, applies: Any, convert: Any) -> pa.RecordBatch:
    if not any(applies(field.type) for field in batch.schema):
        return batch
    arrays = [convert(column) if applies(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _needs_text_keys(type_: pa.DataType) -> bool:
    if pa.types.is_map(type_) and not _is_text(type_.key_type):
        return True
    return any(_needs_text_keys(child.type) for child in _children(type_))


def _with_text_keys(column: pa.Array) -> pa.Array:
    return column.cast(_text_keyed(column.type))


def _text_keyed(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_map(type_):
        return pa.map_(pa.string(), _text_keyed(type_.item_type))
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_text_keyed(field.type)) for field in type_])
    if _is_list(type_):
        return _with_items(type_, _text_keyed)
    return type_


def _as_json_text(column: pa.Array) -> pa.Array:
    import pyarrow.compute as pc  # Slow to import; few results need it.

    buffer = io.BytesIO()
    batch = for_json(pa.RecordBatch.from_arrays([column], names=["c"]))
    arro3.io.write_ndjson(batch, buffer, explicit_nulls=True)
    # Each line is {"c":<value>}. JSON text holds no raw line feed, so what ends at one is a row;
    # it may hold other characters that text has for line breaks, such as U+2028.
    lines = buffer.getvalue().decode().split("\n")[:-1]
    values = pa.array([line[5:-1] for line in lines], pa.string())
    return pc.if_else(column.is_valid(), values, pa.scalar(None, pa.string()))


def _plain(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_binary_view(type_):
        return pa.binary()
    if _is_list(type_):
        return _with_items(type_, _plain)
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_plain(field.type)) for field in type_])
    if pa.types.is_dictionary(type_):
        return pa.dictionary(type_.index_type, _plain(type_.value_type), type_.ordered)
    if pa.types.is_map(type_):
        return pa.map_(_plain(type_.key_type), type_.item_field.with_type(_plain(type_.item_type)))
    return type_


def _is_list(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(type_)
        or pa.types.is_large_list(type_)
        or pa.types.is_fixed_size_list(type_)
    )


def _with_items(type_: pa.DataType, convert: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    item = type_.value_field.with_type(convert(type_.value_type))
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(item, type_.list_size)
    return pa.large_list(item) if pa.types.is_large_list(type_) else pa.list_(item)


def _children(type_: pa.DataType) -> list[pa.Field]:
    return [type_.field(index) for index in range(type_.num_fields)]


def _is_text(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
    )
