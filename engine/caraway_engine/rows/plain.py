"""Converts rows that leave a fragment: plain strings and lists, and no shared memory.

Plain lists stand for lists of a fixed size, which Substrait cannot express. So the vectors of
searched tables travel and are stored as lists.
"""

from collections.abc import Callable, Sequence

import pyarrow as pa

from caraway_core.errors import ExecutionError

types = pa.types


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Return the type without views and fixed list sizes, also in nested types."""
    return _rebuilt(type_, _plain_field)


def with_lists(schema: pa.Schema) -> pa.Schema:
    """Return the schema with plain lists in place of lists of a fixed size."""
    return pa.schema([_with_lists(each) for each in schema], schema.metadata)


def _with_lists(field: pa.Field) -> pa.Field:
    if not types.is_fixed_size_list(field.type):
        return field
    return field.with_type(pa.list_(field.type.value_field))


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
        return pa.list_(inner(type_.value_field))
    if types.is_dictionary(type_):
        return pa.dictionary(type_.index_type, _rebuilt(type_.value_type, inner), type_.ordered)
    return type_


def _kind(type_: pa.DataType) -> pa.DataType:
    """Return the plain type without nullability of nested fields, for comparison."""
    return _rebuilt(type_, lambda field: pa.field(field.name, _kind(field.type)))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema without views and fixed list sizes."""
    return pa.schema([_plain_field(each) for each in schema])


def check_same(found: pa.Schema, expected: pa.Schema) -> None:
    """Check that types match by position, where a type equals its plain type.

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


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the names and types of the plain `schema`; only views are copied.

    Raises:
        ExecutionError: a non-nullable column has NULL.
    """
    if not len(schema):
        return batch
    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        _check_nulls(column, field)
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _check_nulls(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> None:
    if not field.nullable and column.null_count:
        raise ExecutionError(
            f"column '{field.name}' of a fragment contains NULL, but is not nullable in the plan; "
            "this is a bug in the planner, not in the statement: please report it"
        )


def _plain_column(
    arrays: Sequence[pa.Array], field: pa.Field, pool: pa.MemoryPool | None
) -> pa.Array:
    column = pa.chunked_array(arrays, arrays[0].type)
    if column.type != field.type:
        column = column.cast(field.type)
    _check_nulls(column, field)
    # This copies: a slice would keep the whole original alive and serialize it.
    return column.combine_chunks(memory_pool=pool)


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))


def restored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows from an exchange with the names and types of the statement."""
    if not len(schema) or batch.schema.equals(schema, check_metadata=True):
        return batch
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def has_views(schema: pa.Schema) -> bool:
    """Return whether a column has views, which keep the whole text that they point into alive.

    Columns with lists of a fixed size are counted, too: both are converted before rows cross.
    """
    return any(plain_type(each.type) != each.type for each in schema)
