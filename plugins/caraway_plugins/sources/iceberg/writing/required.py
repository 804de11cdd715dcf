"""Fields of tables that take no NULL, also those inside of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from caraway_plugins.iceberg.column_types import IcebergField, IcebergSchema, MapType, StructType


def missing(batch: pa.RecordBatch, schema: IcebergSchema, required: frozenset[int]) -> str | None:
    """Return the path of a required field that has a NULL; None: all have values."""
    for field, values in zip(schema.fields, batch.columns, strict=True):
        if (path := _missing(field, values, required)) is not None:
            return path
    return None


def _missing(field: IcebergField, values: pa.Array, required: frozenset[int]) -> str | None:
    if field.id in required and values.null_count:
        return field.name
    if not field.inner or required.isdisjoint(_ids(field)):
        return None
    values = values.drop_null()
    for inner, own in zip(field.inner, _parts(field, values), strict=True):
        if (path := _missing(inner, own, required)) is not None:
            return f"{field.name}.{path}"
    return None


def _parts(field: IcebergField, values: pa.Array) -> list[pa.Array]:
    """Return the values inside of values that are not NULL."""
    if isinstance(field.type, StructType):
        return values.flatten() if isinstance(values, pa.StructArray) else []
    if isinstance(field.type, MapType):
        entries = pc.list_flatten(values.cast(pa.list_(pa.struct([
            pa.field("key", values.type.key_type), pa.field("value", values.type.item_type)
        ]))))  # fmt: skip
        return list(entries.flatten())
    return [pc.list_flatten(values)]


def _ids(field: IcebergField) -> set[int]:
    return {field.id, *(id_ for each in field.inner for id_ in _ids(each))}


def required_fields(document: Mapping[str, object]) -> frozenset[int]:
    """Return the ids of the fields of a schema in JSON that take no NULL."""
    return frozenset(_required(document))


def _required(document: Mapping[str, Any]) -> set[int]:
    found: set[int] = set()
    for each in document.get("fields", ()):
        if each.get("required"):
            found.add(int(each["id"]))
        found |= _required_inside(each["type"])
    return found


def _required_inside(type_: object) -> set[int]:
    if not isinstance(type_, Mapping):
        return set()
    found = _required(type_)
    for name in ("element", "value"):
        if name in type_:
            found |= {int(type_[f"{name}-id"])} if type_.get(f"{name}-required") else set()
            found |= _required_inside(type_[name])
    return found | _required_inside(type_.get("key"))
