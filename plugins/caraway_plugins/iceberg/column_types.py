"""Iceberg types of Arrow columns, with the ids of their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

types = pa.types
_MOST_DEPTH = 32
_FIELD_ID = b"PARQUET:field_id"
_UTC = frozenset({"UTC", "utc", "Z", "+00:00", "Etc/UTC", "GMT", "Etc/GMT"})
Path = tuple[str, ...]


class NoIcebergTypeError(ValueError):
    """A column whose values Iceberg cannot hold, or cannot read from its files."""


@dataclass(frozen=True, slots=True)
class StructType:
    """Named fields."""

    fields: tuple[IcebergField, ...]

    def document(self) -> dict[str, Any]:
        """Return the type as JSON."""
        return {"type": "struct", "fields": [each.document() for each in self.fields]}


@dataclass(frozen=True, slots=True)
class ListType:
    """A list; its only field is `element`."""

    element: IcebergField

    def document(self) -> dict[str, Any]:
        """Return the type as JSON."""
        return {
            "type": "list",
            "element-id": self.element.id,
            "element": _document(self.element.type),
            "element-required": False,
        }


@dataclass(frozen=True, slots=True)
class MapType:
    """A map with the fields `key` and `value`."""

    key: IcebergField
    value: IcebergField

    def document(self) -> dict[str, Any]:
        """Return the type as JSON."""
        return {
            "type": "map",
            "key-id": self.key.id,
            "key": _document(self.key.type),
            "value-id": self.value.id,
            "value": _document(self.value.type),
            "value-required": False,
        }


IcebergType = str | StructType | ListType | MapType


@dataclass(frozen=True, slots=True)
class IcebergField:
    """A field with the id that stays the same where its name changes."""

    id: int
    name: str
    type: IcebergType
    doc: str = ""

    def document(self) -> dict[str, Any]:
        """Return the field as JSON."""
        document = {
            "id": self.id,
            "name": self.name,
            "required": False,
            "type": _document(self.type),
        }
        return {**document, "doc": self.doc} if self.doc else document

    @property
    def inner(self) -> tuple[IcebergField, ...]:
        """The fields of its type."""
        match self.type:
            case StructType(fields):
                return fields
            case ListType(element):
                return (element,)
            case MapType(key, value):
                return (key, value)
            case _:
                return ()


@dataclass(frozen=True, slots=True)
class IcebergSchema:
    """The columns of a table."""

    fields: tuple[IcebergField, ...]
    id: int = 0
    """Tells it from the schemas that the table had before."""

    @property
    def last_id(self) -> int:
        return max((each.id for _, each in self.paths()), default=0)

    def document(self) -> dict[str, Any]:
        """Return the schema as JSON."""
        return {"schema-id": self.id, **StructType(self.fields).document()}

    def paths(self) -> Iterator[tuple[Path, IcebergField]]:
        """Yield all fields, also those inside of others, each with its path."""
        return _paths((), self.fields)

    def field(self, name: str) -> IcebergField:
        """Return a column by name."""
        return next(each for each in self.fields if each.name == name)


def schema(
    columns: pa.Schema,
    own_ids: Mapping[Path, int] | None = None,
    docs: Mapping[str, str] | None = None,
    last_id: int = 0,
) -> IcebergSchema:
    """Return the Iceberg schema of a table's columns.

    `own_ids` are ids that fields have already, by path. The others get ids above these, and above
    `last_id`.

    Raises:
        NoIcebergTypeError: a column has a type that Iceberg lacks; the message names all of them.
    """
    ids = _Ids(own_ids or {}, last_id)
    docs = docs or {}
    fields, refused = [], []
    for column in columns:
        try:
            field = ids.field((column.name,), column.type)
            fields.append(IcebergField(field.id, field.name, field.type, docs.get(column.name, "")))
        except NoIcebergTypeError as exc:
            refused.append(str(exc))
    if refused:
        raise NoIcebergTypeError("; ".join(refused))
    return IcebergSchema(tuple(fields))


def field_ids(columns: pa.Schema) -> dict[Path, int]:
    """Return the ids that a Parquet file has for its fields, by path; empty where it has none."""
    return dict(_own_ids((), columns))


def with_ids(
    columns: pa.Schema, own_ids: Mapping[Path, int] | None = None, last_id: int = 0
) -> pa.Schema:
    """Return the columns with the ids of their Iceberg schema, as Parquet files have them.

    Raises:
        NoIcebergTypeError: a column has a type that Iceberg lacks.
    """
    fields = schema(columns, own_ids, last_id=last_id).fields
    return pa.schema([numbered(own, each.type) for own, each in zip(fields, columns, strict=True)])


def numbered(own: IcebergField, type_: pa.DataType) -> pa.Field:
    """Return a column of a type with the ids of its field, as Parquet files have them."""
    inner = own.inner
    if types.is_struct(type_):
        pairs = zip(inner, type_, strict=True)
        type_ = pa.struct([numbered(each, field.type) for each, field in pairs])
    elif types.is_map(type_):
        key = numbered(inner[0], type_.key_type).with_nullable(False)
        type_ = pa.map_(key, numbered(inner[1], type_.item_type))
    elif is_list(type_):
        type_ = pa.list_(numbered(inner[0], type_.value_type))
    return pa.field(own.name, type_, metadata={_FIELD_ID: str(own.id)})


def kind(type_: pa.DataType) -> str | None:
    """Return the primitive type of Iceberg for values of an Arrow type; None: there is none."""
    match type_:
        case _ if type_ in _PRIMITIVES:
            return _PRIMITIVES[type_]
        case _ if types.is_decimal128(type_) or types.is_decimal256(type_):
            is_held = type_.precision <= 38 and 0 <= type_.scale <= type_.precision
            return f"decimal({type_.precision}, {type_.scale})" if is_held else None
        case _ if types.is_timestamp(type_):
            if type_.tz is None:
                return "timestamp"
            return "timestamptz" if type_.tz in _UTC else None
        case _ if types.is_fixed_size_binary(type_):
            return f"fixed[{type_.byte_width}]"
        case _ if types.is_dictionary(type_):
            return kind(type_.value_type)
        case _:
            return None


def holds(kind: str, other: str | None) -> bool:
    """Return whether readers take values of another primitive type for those of a type."""
    if kind == other or (other, kind) in _WIDENED:
        return True
    if other is None or not (kind.startswith("decimal") and other.startswith("decimal")):
        return False
    (precision, scale), (own, own_scale) = _digits(kind), _digits(other)
    return scale == own_scale and own <= precision


def _digits(decimal: str) -> tuple[int, int]:
    precision, scale = decimal[len("decimal(") : -1].split(", ")
    return int(precision), int(scale)


_WIDENED = {("int", "long"), ("float", "double")}
_PRIMITIVES = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.time64("us"): "time",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
}


class _Ids:
    """Gives ids to fields, in order."""

    def __init__(self, own: Mapping[Path, int], last_id: int) -> None:
        self._own = own
        self._last = max((last_id, *own.values()))

    def field(self, path: Path, type_: pa.DataType) -> IcebergField:
        id_ = self._own.get(path)
        if id_ is None:
            self._last += 1
            id_ = self._last
        return IcebergField(id_, path[-1], self._type(path, type_))

    def _type(self, path: Path, type_: pa.DataType) -> IcebergType:
        if len(path) > _MOST_DEPTH:
            raise NoIcebergTypeError(f"column '{path[0]}' is nested too deeply")
        if types.is_struct(type_):
            return StructType(tuple(self.field((*path, each.name), each.type) for each in type_))
        if types.is_map(type_):
            key = self.field((*path, "key"), type_.key_type)
            return MapType(key, self.field((*path, "value"), type_.item_type))
        if is_list(type_):
            return ListType(self.field((*path, "element"), type_.value_type))
        if (found := kind(type_)) is None:
            raise NoIcebergTypeError(f"column '{'.'.join(path)}' is {type_}")
        return found


def is_list(type_: pa.DataType) -> bool:
    """Return whether values of a type are lists, of whichever encoding."""
    return bool(
        types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_)
    )


def _own_ids(path: Path, fields: Any) -> Iterator[tuple[Path, int]]:
    for field in fields:
        yield from _field_ids((*path, field.name), field)


def _field_ids(path: Path, field: pa.Field) -> Iterator[tuple[Path, int]]:
    text = (field.metadata or {}).get(_FIELD_ID)
    if text is not None and int(text) > 0:
        yield path, int(text)
    type_ = field.type
    if types.is_struct(type_):
        yield from _own_ids(path, type_)
    elif types.is_map(type_):
        yield from _field_ids((*path, "key"), type_.key_field)
        yield from _field_ids((*path, "value"), type_.item_field)
    elif is_list(type_):
        yield from _field_ids((*path, "element"), type_.value_field)


def _paths(above: Path, fields: tuple[IcebergField, ...]) -> Iterator[tuple[Path, IcebergField]]:
    for each in fields:
        path = (*above, each.name)
        yield path, each
        yield from _paths(path, each.inner)


def _document(type_: IcebergType) -> object:
    return type_ if isinstance(type_, str) else type_.document()
