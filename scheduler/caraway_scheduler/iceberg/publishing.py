"""Writes the metadata of tables to where their readers find it. Its functions block."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from caraway_core.errors import UnavailableError
from caraway_core.ids import TableName
from caraway_core.table_specs import TableSpec
from caraway_core.tables import StoreSpec
from caraway_plugins.iceberg import (
    column_types,
    manifests,
    metadata,
    partitioning,
    planned,
    view_metadata,
)
from caraway_plugins.iceberg.column_types import IcebergSchema
from caraway_plugins.iceberg.file_statistics import FooterReader
from caraway_plugins.iceberg.manifests import DataFile, WrittenManifest
from caraway_plugins.iceberg.metadata import TableSnapshot
from caraway_plugins.iceberg.partitioning import PartitionSpec
from caraway_plugins.sources import parquet_files
from caraway_plugins.sources.parquet_files import ParquetFile
from caraway_plugins.stores.published import Published
from caraway_scheduler.iceberg.names import CATALOG, QualifiedName

_METADATA = "metadata.json"
_TASKS = "tasks.json"
KEY_LENGTH = 32
_NAMESPACE = uuid.UUID("6a2f0f4e-6d53-4c8e-9e0b-4d2f4b8f3a51")


@dataclass(frozen=True, slots=True)
class TableTitle:
    """What the catalog says of a table beside its rows; `origin` tells it from one that replaces
    it.
    """

    name: str
    origin: str
    comment: str = ""
    docs: Mapping[str, str] = field(default_factory=dict)

    @property
    def uuid(self) -> str:
        return str(uuid.uuid5(_NAMESPACE, f"{self.name}\0{self.origin}"))

    def properties(self) -> dict[str, str]:
        """Return the properties that every table has."""
        comment = {"comment": self.comment} if self.comment else {}
        # A writer would put files there before it finds that it cannot commit.
        nowhere = f"caraway://{self.name}/is-read-only"
        paths = {"write.data.path": nowhere, "write.metadata.path": nowhere}
        return {"caraway.table": self.name, **paths, **comment}


@dataclass(frozen=True, slots=True)
class TableState:
    """Names the rows of a table at one moment, and has the moment.

    That is when the rows came to be, before any client asked for them: DuckDB reads no snapshot
    that is younger than its transaction.
    """

    key: str
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table as clients load it: metadata, its location if it has one, and how to reach files."""

    metadata: Mapping[str, Any]
    location: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    """Names its state where it is published."""

    def document(self) -> bytes:
        """Return the answer to a client."""
        location = {"metadata-location": self.location} if self.location else {}
        document = {**location, "metadata": self.metadata, "config": self.config}
        return json.dumps(document, separators=(",", ":")).encode()


def files(
    title: TableTitle, table: TableSpec, place: Published, state: TableState | None = None
) -> LoadedTable:
    """Publish the metadata of a table over Parquet files, unless the place has it.

    Without a `state`, it is that of the files.

    Raises:
        DatasetError: a file cannot be read.
        NoIcebergTypeError: Iceberg cannot read the files as the table has them.
        ExecutionError: the place cannot be written.
    """
    found = parquet_files.find(table)
    names = _names_in_files(table)
    schema = column_types.schema(table.schema, _own_ids(found, names), title.docs)
    spec = partitioning.spec(schema, _partition_columns(table))
    store = table.scans[0].store if table.scans else None
    if state is None:
        newest_s = max((each.found.modified_s for each in found), default=0.0)
        state = TableState(_key(title, schema, spec, found), int(newest_s * 1000))
    key = state.key
    if (kept := known(title, key, place, store)) is not None:
        return kept
    data = _data_files(schema, spec, found, names)
    snapshot = _snapshot(schema, spec, data, place, home(title, key), state)
    properties = {
        **title.properties(),
        metadata.NAME_MAPPING: metadata.name_mapping(schema, names),
        "caraway.rows": _reach(store),
    }
    root = place.location(title.uuid)
    document = metadata.document(title.uuid, root, schema, spec, properties, snapshot)
    name = f"{home(title, key)}/{_METADATA}"
    place.write(name, json.dumps(document).encode())
    return LoadedTable(document, place.location(name), _config(store), key)


def known(
    title: TableTitle, key: str, place: Published, store: StoreSpec | None
) -> LoadedTable | None:
    """Return a table that the place has in a state."""
    name = f"{home(title, key)}/{_METADATA}"
    content = place.read(name)
    if content is None:
        return None
    return LoadedTable(json.loads(content), place.location(name), _config(store), key)


def home(title: TableTitle, key: str) -> str:
    """Return the folder of a state of a table."""
    return f"{title.uuid}/{key[:KEY_LENGTH]}"


def columns_only(
    title: TableTitle, columns: pa.Schema, reason: str, timestamp_ms: int
) -> LoadedTable:
    """Return a table whose rows are in no files. To read it fails; it does not look empty.

    Raises:
        NoIcebergTypeError: a column has a type that Iceberg lacks.
    """
    schema = column_types.schema(columns, docs=title.docs)
    location = f"caraway://{title.name}/rows-are-not-in-files"
    snapshot = TableSnapshot(_number(schema.document()), timestamp_ms, location, 0, 0, 0)
    properties = {
        **title.properties(),
        metadata.NAME_MAPPING: metadata.name_mapping(schema, {}),
        "caraway.rows": f"none: {reason}",
    }
    document = metadata.document(
        title.uuid, location, schema, PartitionSpec(), properties, snapshot
    )
    # No `config`: DuckDB takes it for credentials, and misses a region in place of the rows.
    return LoadedTable(document)


def view(title: TableTitle, columns: pa.Schema, sql: str, timestamp_ms: int) -> bytes:
    """Return the answer for a view.

    Raises:
        NoIcebergTypeError: a column has a type that Iceberg lacks.
    """
    schema = column_types.schema(columns, docs=title.docs)
    location = f"caraway://{title.name}/view"
    document = view_metadata.document(
        title.uuid,
        location,
        schema,
        sql,
        CATALOG,
        QualifiedName.of(TableName(title.name)).schema,
        title.properties(),
        timestamp_ms,
    )
    answer = {"metadata-location": location, "metadata": document, "config": {}}
    return json.dumps(answer, separators=(",", ":")).encode()


def scan_tasks(loaded: LoadedTable, place: Published) -> list[dict[str, Any]]:
    """Return the files of a published table as tasks of a scan.

    Raises:
        UnavailableError: they were deleted a moment ago.
        ExecutionError: the place cannot be read.
    """
    content = place.read(f"{loaded.metadata['table-uuid']}/{loaded.key[:KEY_LENGTH]}/{_TASKS}")
    if content is None:
        raise UnavailableError("the table was replaced a moment ago; load it again")
    found: list[dict[str, Any]] = json.loads(content)
    return found


def _data_files(
    schema: IcebergSchema,
    spec: PartitionSpec,
    found: Sequence[ParquetFile],
    names: Mapping[str, str],
) -> list[DataFile]:
    reader = FooterReader(schema, names)
    return parquet_files.read_footers(
        found,
        lambda file, footer: DataFile(
            file.location, file.found.size_bytes, reader.read(footer), spec.values(file.values)
        ),
    )


def _snapshot(
    schema: IcebergSchema,
    spec: PartitionSpec,
    data: Sequence[DataFile],
    place: Published,
    home: str,
    state: TableState,
) -> TableSnapshot:
    snapshot_id = int(state.key[:16], 16) >> 1 or 1
    written: list[tuple[str, WrittenManifest]] = []
    for start in range(0, len(data), manifests.MOST_FILES):
        part = manifests.manifest(
            schema, spec, snapshot_id, data[start : start + manifests.MOST_FILES]
        )
        name = f"{home}/m{len(written)}.avro"
        place.write(name, part.content)
        written.append((place.location(name), part))
    listed = manifests.manifest_list(snapshot_id, metadata.SEQUENCE_NUMBER, written)
    place.write(f"{home}/list.avro", listed)
    tasks = [planned.task(each) for each in data]
    place.write(f"{home}/{_TASKS}", json.dumps(tasks, default=str).encode())
    return TableSnapshot(
        snapshot_id,
        state.timestamp_ms,
        place.location(f"{home}/list.avro"),
        len(data),
        sum(each.statistics.row_count for each in data),
        sum(each.size_bytes for each in data),
    )


def _own_ids(
    found: Sequence[ParquetFile], names: Mapping[str, str]
) -> dict[column_types.Path, int]:
    """Return the field ids of the first file, by the names of the table."""
    if not found:
        return {}
    in_table = {own: name for name, own in names.items()}
    columns = found[0].footer().schema.to_arrow_schema()
    return {
        (in_table.get(path[0], path[0]), *path[1:]): id_
        for path, id_ in column_types.field_ids(columns).items()
    }


def _names_in_files(table: TableSpec) -> dict[str, str]:
    pairs = (
        pair
        for scan in table.scans
        for pair in zip(scan.table_names, scan.schema.names, strict=True)
    )
    return {name: own for name, own in pairs if name != own}


def _partition_columns(table: TableSpec) -> list[pa.Field]:
    found = {each.name: each for scan in table.scans for each in scan.partition_columns}
    return list(found.values())


def _key(
    title: TableTitle, schema: IcebergSchema, spec: PartitionSpec, found: Sequence[ParquetFile]
) -> str:
    """Return a hash of everything that the metadata is made of."""
    parts = [title.properties(), schema.document(), spec.document()]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    digest.update(parquet_files.fingerprint(found).encode())
    return digest.hexdigest()


def _number(document: Mapping[str, Any]) -> int:
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    return int(digest[:16], 16) >> 1 or 1


def _reach(store: StoreSpec | None) -> str:
    if store is None:
        return "files of the machine that runs Caraway; readers need the same paths"
    return f"files in {store.kind}://{store.bucket}; readers need their own access to them"


def _config(store: StoreSpec | None) -> dict[str, str]:
    """Return how clients reach a bucket, without what signs them in."""
    if store is None or store.kind != "s3":
        return {}
    options = store.options
    config = {"s3.region": options.get("region"), "client.region": options.get("region")}
    if endpoint := options.get("endpoint"):
        config |= {"s3.endpoint": endpoint, "s3.path-style-access": "true"}
    if options.get("skip_signature") == "true":
        config["s3.anonymous"] = "true"
    return {key: text for key, text in config.items() if text}
