"""Looks for structs in the types of columns."""

import pyarrow as pa

types = pa.types


def has_structs(type_: pa.DataType) -> bool:
    """Return whether values of a type have structs in them."""
    return types.is_struct(type_) or any(
        has_structs(type_.field(index).type) for index in range(type_.num_fields)
    )


def has_required(field: pa.Field) -> bool:
    """Return whether a struct in a column may be NULL, and has a field that may not."""
    inner = [field.type.field(index) for index in range(field.type.num_fields)]
    is_optional = types.is_struct(field.type) and field.nullable
    return (is_optional and not all(each.nullable for each in inner)) or any(
        map(has_required, inner)
    )
