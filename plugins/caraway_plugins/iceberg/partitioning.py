"""Partitions of Iceberg: the values of `key=value` folders, by identity."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa

from caraway_plugins.iceberg import avro_bytes, bounds
from caraway_plugins.iceberg.column_types import IcebergField, IcebergSchema, NoIcebergTypeError

_FIRST_ID = 1000
_EPOCH = date(1970, 1, 1)
_AVRO: dict[str, Any] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "date": {"type": "int", "logicalType": "date"},
}
_ENCODED: dict[str, Callable[[Any], bytes]] = {
    "boolean": lambda value: b"\x01" if value else b"\x00",
    "int": avro_bytes.long,
    "long": avro_bytes.long,
    "float": struct.Struct("<f").pack,
    "double": struct.Struct("<d").pack,
    "string": avro_bytes.text,
    "date": lambda value: avro_bytes.long((value - _EPOCH).days),
}


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A column that all rows of a file share the value of."""

    id: int
    source: IcebergField
    arrow: pa.DataType

    def document(self) -> dict[str, Any]:
        """Return the field as JSON."""
        return {
            "source-id": self.source.id,
            "field-id": self.id,
            "name": self.source.name,
            "transform": "identity",
        }

    def avro(self) -> dict[str, Any]:
        """Return the field as one of Avro."""
        return {
            "name": self.source.name,
            "type": ["null", _AVRO[str(self.source.type)]],
            "default": None,
            "field-id": self.id,
        }

    def value(self, text: str | None) -> Any:
        """Return the value that the text of a folder stands for, as Avro has it.

        Raises:
            NoIcebergTypeError: the text is no value of the type.
        """
        if text is None:
            return None
        try:
            cast = pa.scalar(text, pa.string()).cast(self.arrow)
        except pa.ArrowException as exc:
            raise NoIcebergTypeError(
                f"'{text}' is no {self.source.type} for column '{self.source.name}'"
            ) from exc
        return cast.as_py()

    def encoded(self, value: object) -> bytes:
        """Return a value in Avro."""
        if value is None:
            return avro_bytes.NULL
        return avro_bytes.SOME + _ENCODED[str(self.source.type)](value)

    def bound(self, value: Any, is_upper: bool) -> bytes | None:
        """Return a value as a bound of a manifest list."""
        kind = str(self.source.type)
        if kind == "date":
            value = (value - _EPOCH).days
        elif kind == "string":
            value = value.encode()
        return bounds.packer(self.arrow, kind)(value, is_upper)


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The partition columns of a table, in order; none where it has no partitions."""

    fields: tuple[PartitionField, ...] = ()

    @property
    def last_id(self) -> int:
        return _FIRST_ID + len(self.fields) - 1

    def document(self) -> dict[str, Any]:
        """Return the spec as JSON."""
        return {"spec-id": 0, "fields": [each.document() for each in self.fields]}

    def record(self, values: Mapping[str, object]) -> bytes:
        """Return the partition of a file in Avro."""
        return b"".join(each.encoded(values[each.source.name]) for each in self.fields)

    def values(self, texts: Sequence[str | None]) -> dict[str, Any]:
        """Return the record of a file's partition."""
        return {
            each.source.name: each.value(text)
            for each, text in zip(self.fields, texts, strict=True)
        }


def spec(schema: IcebergSchema, columns: Sequence[pa.Field]) -> PartitionSpec:
    """Return the spec for partition columns of a table.

    Raises:
        NoIcebergTypeError: a column has a type that folders are not written for.
    """
    fields = []
    for number, column in enumerate(columns):
        source = schema.field(column.name)
        if source.type not in _AVRO:
            raise NoIcebergTypeError(f"partition column '{column.name}' is {column.type}")
        fields.append(PartitionField(_FIRST_ID + number, source, column.type))
    return PartitionSpec(tuple(fields))
