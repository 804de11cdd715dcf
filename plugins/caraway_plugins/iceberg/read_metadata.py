"""Table metadata that other programs wrote: its snapshots, its schemas and its names."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caraway_plugins.iceberg import read_schemas
from caraway_plugins.iceberg.column_types import IcebergField, IcebergSchema
from caraway_plugins.iceberg.metadata import NAME_MAPPING

_NONE = -1
_NEWEST_FORMAT = 3
_MOST_DIGITS = 19
_FIRST_PARTITION_ID = 1000
NameMapping = Sequence[Mapping[str, Any]]


class NoSnapshotError(ValueError):
    """A snapshot, tag or branch that the table does not have."""


@dataclass(frozen=True, slots=True)
class ReadSnapshot:
    """The rows of a table at one moment: a list of manifests, or for old tables their locations."""

    id: int
    manifest_list: str | None
    manifests: tuple[str, ...]
    schema_id: int | None


@dataclass(frozen=True, slots=True)
class ReadPartitionField:
    """A value that all rows of a file share: of a column, or computed from it."""

    source_id: int
    is_identity: bool


@dataclass(frozen=True, slots=True)
class ReadMetadata:
    """The metadata of a table."""

    uuid: str
    location: str
    schemas: tuple[IcebergSchema, ...]
    schema_id: int
    specs: Mapping[int, tuple[ReadPartitionField, ...]]
    snapshots: Mapping[int, ReadSnapshot]
    current_id: int | None
    refs: Mapping[str, tuple[int, str]]
    """The snapshot and the kind (`tag` or `branch`) of each name."""
    name_mapping: NameMapping | None

    def schema(self, id_: int | None = None) -> IcebergSchema:
        """Return a schema by its id, or the current one."""
        wanted = self.schema_id if id_ is None else id_
        return next(each for each in self.schemas if each.id == wanted)

    def known_fields(self) -> dict[int, IcebergField]:
        """Return every column that the table has or had, by id; the newest form of each."""
        current = self.schema()
        order = sorted(self.schemas, key=lambda each: (each == current, each.id))
        return {field.id: field for each in order for field in each.fields}

    def at(self, name: str) -> tuple[ReadSnapshot | None, IcebergSchema]:
        """Return a snapshot with its columns, by id, tag or branch; the current one without a name.

        Those of a branch are the columns that the table has now.

        Raises:
            NoSnapshotError: there is none.
        """
        if not name:
            snapshot = None if self.current_id is None else self._snapshot(self.current_id)
            return snapshot, self.schema()
        if name in self.refs:
            id_, kind = self.refs[name]
            snapshot = self._snapshot(id_)
            return snapshot, self.schema(None if kind == "branch" else snapshot.schema_id)
        if name.isascii() and name.isdigit() and len(name) <= _MOST_DIGITS:
            snapshot = self._snapshot(int(name))
            return snapshot, self.schema(snapshot.schema_id)
        raise NoSnapshotError(f"it has no tag and no branch '{name}'")

    def _snapshot(self, id_: int) -> ReadSnapshot:
        if id_ not in self.snapshots:
            raise NoSnapshotError(f"it has no snapshot {id_}, which may have expired")
        return self.snapshots[id_]


def document(content: bytes) -> Mapping[str, Any]:
    """Return the document of a file of metadata, which may be compressed by gzip.

    Raises:
        ValueError, OSError, EOFError: the file is cut or damaged.
    """
    try:
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        found = json.loads(content)
    except (RecursionError, zlib.error) as exc:
        raise ValueError("it is damaged") from exc
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    return found


def parsed(document: Mapping[str, Any]) -> ReadMetadata:
    """Return the metadata of a document.

    Raises:
        NoIcebergTypeError: a column has a type that is not known here.
        LookupError, TypeError, ValueError: the document is damaged.
    """
    try:
        return _parsed(document)
    except (AttributeError, RecursionError) as exc:
        raise ValueError("it is damaged") from exc


def _parsed(document: Mapping[str, Any]) -> ReadMetadata:
    if (version := int(document["format-version"])) > _NEWEST_FORMAT:
        raise ValueError(f"its format has version {version}")
    current_id = document.get("current-snapshot-id")
    listed = with_lists(document)
    schemas, schema_id = _schemas(listed)
    mapping = (document.get("properties") or {}).get(NAME_MAPPING)
    return ReadMetadata(
        str(document.get("table-uuid", "")),
        str(document["location"]).rstrip("/"),
        schemas,
        schema_id,
        {
            int(each["spec-id"]): tuple(map(_partition_field, each["fields"]))
            for each in listed["partition-specs"]
        },
        {int(each["snapshot-id"]): _snapshot(each) for each in document.get("snapshots") or ()},
        None if current_id in (None, _NONE) else int(current_id),
        {
            name: (int(each["snapshot-id"]), str(each["type"]))
            for name, each in (document.get("refs") or {}).items()
        },
        json.loads(mapping) if mapping else None,
    )


def with_lists(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with its schemas and partition specs as lists, with ids.

    The first version of the format need not have them.
    """
    listed = {"default-spec-id": 0, **document}
    if "schemas" not in listed:
        schema = {"schema-id": 0, **listed["schema"]}
        listed |= {"schemas": [schema], "current-schema-id": schema["schema-id"]}
    specs = listed.get("partition-specs") or [
        {"spec-id": 0, "fields": listed.get("partition-spec", [])}
    ]
    listed["partition-specs"] = [{**each, "fields": _numbered(each["fields"])} for each in specs]
    return listed


def _numbered(fields: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return fields of a partition spec, each with an id."""
    return [{"field-id": _FIRST_PARTITION_ID + n, **each} for n, each in enumerate(fields)]


def _schemas(document: Mapping[str, Any]) -> tuple[tuple[IcebergSchema, ...], int]:
    current = int(document["current-schema-id"])
    schemas = tuple(map(read_schemas.schema, document["schemas"]))
    if all(each.id != current for each in schemas):
        raise ValueError(f"it has no schema {current}")
    return schemas, current


def _partition_field(document: Mapping[str, Any]) -> ReadPartitionField:
    source_id = document.get("source-id")
    transform = str(document["transform"])
    return ReadPartitionField(
        _NONE if source_id is None else int(source_id), transform == "identity"
    )


def _snapshot(document: Mapping[str, Any]) -> ReadSnapshot:
    schema_id = document.get("schema-id")
    return ReadSnapshot(
        int(document["snapshot-id"]),
        document.get("manifest-list"),
        tuple(document.get("manifests") or ()),
        None if schema_id is None else int(schema_id),
    )
