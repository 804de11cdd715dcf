"""Schemas of manifests and manifest lists in Avro, for each version of the format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import fastavro


def _optional(name: str, type_: object, id_: int) -> dict[str, Any]:
    return {"name": name, "type": ["null", type_], "default": None, "field-id": id_}


def _required(name: str, type_: object, id_: int) -> dict[str, Any]:
    return {"name": name, "type": type_, "field-id": id_}


def _map(key_id: int, value_id: int, value: str) -> dict[str, Any]:
    """Return a map with keys that are no texts, as Avro has it."""
    record = {
        "type": "record",
        "name": f"k{key_id}_v{value_id}",
        "fields": [_required("key", "int", key_id), _required("value", value, value_id)],
    }
    return {"type": "array", "items": record, "logicalType": "map"}


def _list(element_id: int, type_: object) -> dict[str, Any]:
    return {"type": "array", "items": type_, "element-id": element_id}


def _data_file(spec: PartitionRecord, version: int) -> Iterator[dict[str, Any]]:
    partition = {"type": "record", "name": "r102", "fields": [each.avro() for each in spec.fields]}
    if version > 1:
        yield _required("content", "int", 134)
    yield _required("file_path", "string", 100)
    yield _required("file_format", "string", 101)
    yield _required("partition", partition, 102)
    yield _required("record_count", "long", 103)
    yield _required("file_size_in_bytes", "long", 104)
    if version == 1:
        yield _required("block_size_in_bytes", "long", 105)
    yield _optional("column_sizes", _map(117, 118, "long"), 108)
    yield _optional("value_counts", _map(119, 120, "long"), 109)
    yield _optional("null_value_counts", _map(121, 122, "long"), 110)
    yield _optional("nan_value_counts", _map(138, 139, "long"), 137)
    yield _optional("lower_bounds", _map(126, 127, "bytes"), 125)
    yield _optional("upper_bounds", _map(129, 130, "bytes"), 128)
    yield _optional("key_metadata", "bytes", 131)
    yield _optional("split_offsets", _list(133, "long"), 132)
    if version > 1:
        yield _optional("equality_ids", _list(136, "int"), 135)
    yield _optional("sort_order_id", "int", 140)
    if version > 2:
        yield _optional("first_row_id", "long", 142)


class PartitionRecord(Protocol):
    """The fields of the partitions of files."""

    @property
    def fields(self) -> Sequence[AvroField]: ...


class AvroField(Protocol):
    """A field that Avro has a form of."""

    def avro(self) -> dict[str, Any]: ...


def entry_schema(spec: PartitionRecord, version: int) -> Any:
    """Return the schema of the entries of a manifest of a version of the format."""
    data_file = {"type": "record", "name": "r2", "fields": list(_data_file(spec, version))}
    numbers = [
        _optional("sequence_number", "long", 3),
        _optional("file_sequence_number", "long", 4),
    ]
    snapshot = ("snapshot_id", "long", 1)
    fields = [
        _required("status", "int", 0),
        _required(*snapshot) if version == 1 else _optional(*snapshot),
        *(numbers if version > 1 else ()),
        _required("data_file", data_file, 2),
    ]
    return {"type": "record", "name": "manifest_entry", "fields": fields}


def upgraded_schema(schema: Any, version: int) -> Any:
    """Return the schema of another writer's entries with all fields of a version of the format."""
    wanted = entry_schema(_NoPartition(), version)
    own = {each["name"]: each for each in schema["fields"]}
    data_file = own["data_file"]["type"]
    more = next(each for each in wanted["fields"] if each["name"] == "data_file")["type"]["fields"]
    fields = [each for each in data_file["fields"] if version == 1 or each["name"] not in _OLD]
    whole = {**data_file, "fields": _with(fields, more)}
    own["data_file"] = {**own["data_file"], "type": whole}
    return {**schema, "fields": _with(own.values(), wanted["fields"])}


_OLD = ("block_size_in_bytes", "file_ordinal", "sort_columns")


class _NoPartition:
    fields: Sequence[AvroField] = ()


def _with(own: Iterable[dict[str, Any]], wanted: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    names = {each["name"] for each in own}
    return [*own, *(each for each in wanted if each["name"] not in names)]


_SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": [
        _required("contains_null", "boolean", 509),
        _optional("contains_nan", "boolean", 518),
        _optional("lower_bound", "bytes", 510),
        _optional("upper_bound", "bytes", 511),
    ],
}
_COUNTS = (
    ("added_files_count", "int", 504),
    ("existing_files_count", "int", 505),
    ("deleted_files_count", "int", 506),
    ("added_rows_count", "long", 512),
    ("existing_rows_count", "long", 513),
    ("deleted_rows_count", "long", 514),
)


def _list_schema(version: int) -> Any:
    numbers = [
        _required("content", "int", 517),
        _required("sequence_number", "long", 515),
        _required("min_sequence_number", "long", 516),
    ]
    count = _optional if version == 1 else _required
    fields = [
        _required("manifest_path", "string", 500),
        _required("manifest_length", "long", 501),
        _required("partition_spec_id", "int", 502),
        *(numbers if version > 1 else ()),
        _required("added_snapshot_id", "long", 503),
        *(count(*each) for each in _COUNTS),
        _optional("partitions", _list(508, _SUMMARY), 507),
        _optional("key_metadata", "bytes", 519),
        *([_optional("first_row_id", "long", 520)] if version > 2 else ()),
    ]
    return fastavro.parse_schema({"type": "record", "name": "manifest_file", "fields": fields})


LIST_SCHEMAS = {version: _list_schema(version) for version in (1, 2, 3)}
"""The schemas of manifest lists, by the version of the format."""
