"""Converts rows that leave a fragment: plain strings instead of views, and no shared memory."""

from collections.abc import Callable, Sequence

import pyarrow as pa

from caraway_core.errors import ExecutionError

types = pa.types


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Return the type with strings and bytes in place of views, also in nested types."""
    return _rebuilt(type_, _plain_field)


def _rebuilt(type_: pa.DataType, inner: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    if types.is_string_view(type_):
        return pa.string()
    if types.is_binary_view(type_):
        return pa.binary()
    if types.is_struct(type_):
        return pa.struct([inner(each) for each in type_])
    if types.is_map(type_):
        return pa.map_(inner(type_.key_field), inner(type_.item_field))
    if types.is_list(type_):
        return pa.list_(inner(type_.value_field))
    if types.is_large_list(type_):
        return pa.large_list(inner(type_.value_field))
    if types.is_fixed_size_list(type_):
        return pa.list_(inner(type_.value_field), type_.list_size)
    if types.is_dictionary(type_):
        return pa.dictionary(type_.index_type, _rebuilt(type_.value_type, inner), type_.ordered)
    return type_


def _kind(type_: pa.DataType) -> pa.DataType:
    """Return the type without nullability of nested fields, for comparison."""
    return _rebuilt(type_, lambda field: pa.field(field.name, _kind(field.type)))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with strings and bytes in place of views."""
    return pa.schema([_plain_field(each) for each in schema])


def check_same(found: pa.Schema, expected: pa.Schema) -> None:
    """Check that types match by position; a view type equals the type that it views.

    Raises:
        ExecutionError: they differ.
    """
    given = [_kind(each.type) for each in found]
    wanted = [_kind(each.type) for each in expected]
    if given != wanted:
        raise ExecutionError(
            f"a fragment returned columns of types ({', '.join(map(str, given))}) where the plan "
            f"says ({', '.join(map(str, wanted))}); this is a bug in the planner, not in the "
            "statement: please report it"
        )


def plain_table(
    batches: Sequence[pa.RecordBatch], schema: pa.Schema, pool: pa.MemoryPool | None = None
) -> pa.Table:
    """Make one compact table of batches, with the names and types of the plain `schema`.

    The memory that it keeps is allocated from the pool.

    Raises:
        ExecutionError: a non-nullable column has NULL.
    """
    if not batches:
        return schema.empty_table()
    columns = [
        _plain_column([batch.column(index) for batch in batches], field, pool)
        for index, field in enumerate(schema)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _plain_column(
    arrays: Sequence[pa.Array], field: pa.Field, pool: pa.MemoryPool | None
) -> pa.Array:
    column = pa.chunked_array(arrays, arrays[0].type)
    if column.type != field.type:
        column = column.cast(field.type)
    if column.null_count and not field.nullable:
        raise ExecutionError(
            f"column '{field.name}' of a fragment contains NULL, but is not nullable in the plan; "
            "this is a bug in the planner, not in the statement: please report it"
        )
    # This copies: a slice would keep the whole original alive and serialize it.
    return column.combine_chunks(memory_pool=pool)


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))


def restored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows from an exchange with the names and types of the statement."""
    if not len(schema):
        return batch
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def has_views(schema: pa.Schema) -> bool:
    """Return whether a column has views, which keep the whole text that they point into alive."""
    return any(plain_type(each.type) != each.type for each in schema)
