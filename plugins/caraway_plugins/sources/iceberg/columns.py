"""The columns of a data file: which columns of the table they are, whatever their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from caraway_plugins.iceberg import column_types, read_schemas
from caraway_plugins.iceberg.column_types import (
    IcebergField,
    IcebergType,
    ListType,
    MapType,
    StructType,
)
from caraway_plugins.iceberg.read_metadata import NameMapping

types = pa.types
_FIELD_ID = b"PARQUET:field_id"


class NoIdsError(ValueError):
    """A file whose columns have no ids, in a table that has none for their names."""


@dataclass(frozen=True, slots=True)
class OwnField:
    """A field of a file, with the id that it has in the table; None: it is none of the table's."""

    name: str
    id: int | None
    type: pa.DataType
    inner: tuple[OwnField, ...] = ()


def read(columns: pa.Schema, names: NameMapping | None) -> tuple[OwnField, ...]:
    """Return the columns of a file, with ids of the file, or by the table's mapping of names.

    Raises:
        NoIdsError: there is neither.
    """
    fields = tuple(_own(each, None) for each in columns)
    if any(map(_has_id, fields)):
        return fields
    if names is None:
        raise NoIdsError("has columns without field ids, and the table does not map their names")
    return tuple(_own(each, names) for each in columns)


def is_alike(own: OwnField, field: IcebergField) -> bool:
    """Return whether the engine reads a column of a file by itself as the column of the table."""
    if not field.inner:
        return not own.inner and _holds(field.type, own.type)
    return _is_same(own, field)


def projected(values: pa.Array, own: OwnField, type_: IcebergType) -> pa.Array:
    """Return the values of a column of a file as those of the table's type."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if types.is_fixed_size_list(values.type):
        values = values.cast(pa.list_(values.type.value_field))
    match type_:
        case StructType(fields):
            return _struct(values, own, fields)
        case ListType(element):
            inner = projected(values.values, own.inner[0], element.type)
            return pa.ListArray.from_arrays(_offsets(values), inner)
        case MapType(key, value):
            keys = projected(values.keys, own.inner[0], key.type)
            items = projected(values.items, own.inner[1], value.type)
            return pa.MapArray.from_arrays(_offsets(values), keys, items)
        case _:
            return values.cast(read_schemas.arrow_type(type_))


def _own(column: pa.Field, names: NameMapping | None) -> OwnField:
    if names is None:
        text = (column.metadata or {}).get(_FIELD_ID)
        # Files have negative ids where their writer had none.
        id_ = int(text) if text is not None and int(text) > 0 else None
        below: NameMapping | None = None
    else:
        mapped = _mapped(column.name, names)
        id_ = mapped.get("field-id")
        below = mapped.get("fields") or ()
    return OwnField(column.name, id_, column.type, _inner(column.type, below))


def _inner(type_: pa.DataType, names: NameMapping | None) -> tuple[OwnField, ...]:
    if types.is_struct(type_):
        return tuple(_own(each, names) for each in type_)
    if types.is_map(type_):
        pair = type_.key_field.with_name("key"), type_.item_field.with_name("value")
        return tuple(_own(each, names) for each in pair)
    if column_types.is_list(type_):
        return (_own(type_.value_field.with_name("element"), names),)
    return ()


def _mapped(name: str, names: NameMapping) -> Mapping[str, Any]:
    return next((each for each in names if name in each.get("names", ())), {})


def _has_id(own: OwnField) -> bool:
    return own.id is not None or any(map(_has_id, own.inner))


def _is_same(own: OwnField, field: IcebergField) -> bool:
    """Return whether two fields are the same in all depths, with all names."""
    inner = field.inner
    if own.id != field.id or len(own.inner) != len(inner):
        return False
    if not inner:
        return column_types.kind(own.type) == field.type
    if isinstance(field.type, StructType) and [each.name for each in own.inner] != [
        each.name for each in inner
    ]:
        return False
    return all(map(_is_same, own.inner, inner))


def _holds(type_: IcebergType, own: pa.DataType) -> bool:
    assert isinstance(type_, str)
    arrow_type = read_schemas.arrow_type(type_)
    if types.is_fixed_size_binary(arrow_type):
        return bool(own == arrow_type)
    return column_types.holds(column_types.kind(arrow_type) or "", column_types.kind(own))


def _struct(values: pa.Array, own: OwnField, fields: Sequence[IcebergField]) -> pa.Array:
    places = {each.id: place for place, each in enumerate(own.inner)}
    arrays = []
    for field in fields:
        if (place := places.get(field.id)) is None:
            arrays.append(pa.nulls(len(values), read_schemas.arrow_type(field.type)))
        else:
            arrays.append(projected(values.field(place), own.inner[place], field.type))
    made = [pa.field(each.name, array.type) for each, array in zip(fields, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=made, mask=values.is_null())


def _offsets(values: pa.Array) -> pa.Array:
    """Return the offsets of lists or maps, with NULL where a list is NULL."""
    is_null = np.append(np.asarray(values.is_null()), False)
    return pa.array(np.asarray(values.offsets), pa.int32(), mask=is_null)
