"""Writes tables of Iceberg for tests: by PyIceberg, and by hand what it does not write."""

import io
import json
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable, Table
from pyiceberg.transforms import Transform

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import TableSpec
from caraway_plugins.sources.iceberg.source import IcebergSource

_FIELD_ID = b"PARQUET:field_id"
_POSITIONS = pa.schema(
    [
        pa.field("file_path", pa.string(), metadata={_FIELD_ID: b"2147483546"}),
        pa.field("pos", pa.int64(), metadata={_FIELD_ID: b"2147483545"}),
    ]
)


def catalog(folder: Path) -> SqlCatalog:
    """Return a catalog whose tables are below a folder."""
    made = SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder.as_uri())
    made.create_namespace_if_not_exists("n")
    return made


def create(
    folder: Path,
    rows: pa.Table,
    name: str = "t",
    partition: tuple[str, Transform[Any, Any]] | None = None,
    **properties: str,
) -> Table:
    """Create or replace a table with these rows, in the folder of its name."""
    tables = catalog(folder)
    if tables.table_exists(f"n.{name}"):
        tables.drop_table(f"n.{name}")
        shutil.rmtree(folder / name)
    location = (folder / name).as_uri()
    table = tables.create_table(f"n.{name}", rows.schema, location, properties=properties)
    if partition is not None:
        with table.update_spec() as change:
            change.add_field(*partition)
    table.append(rows)
    return table


def adopted(folder: Path, name: str = "t") -> Table:
    """Return a table for PyIceberg with what was written by hand since."""
    tables = catalog(folder)
    tables.drop_table(f"n.{name}")
    return tables.register_table(f"n.{name}", newest(folder / name).as_uri())


def request(
    folder: Path, path: str = "t", declared: Sequence[pa.Field] = (), **params: str
) -> SourceRequest:
    """Return the request of a dataset over a table."""
    return SourceRequest(
        TableName("t"), "iceberg", path, params, tuple(declared), "read", folder, folder
    )


def resolved(folder: Path, path: str = "t", **params: str) -> TableSpec:
    """Return a table as its source resolves it."""
    return IcebergSource().resolve(request(folder, path, **params))


def newest(folder: Path) -> Path:
    """Return the newest metadata file of a table."""
    return max((folder / "metadata").glob("*.metadata.json"))


def judge(folder: Path) -> pa.Table:
    """Return the rows of a table as PyIceberg reads them."""
    return StaticTable.from_metadata(newest(folder).as_uri()).scan().to_arrow()


def data_files(folder: Path) -> list[dict[str, Any]]:
    """Return the entries of the data files of the current snapshot."""
    return [
        entry
        for each in _manifests(folder)[0]
        if each["content"] == 0
        for entry in _read(each["manifest_path"])[0]
        if entry["status"] != 2
    ]


def delete_positions(
    folder: Path, positions: Mapping[str, Sequence[int]], as_of: int | None = None
) -> None:
    """Add a snapshot with a file that deletes rows by their positions in data files."""
    pairs = sorted((path, each) for path, found in positions.items() for each in found)
    columns = [[path for path, _ in pairs], [each for _, each in pairs]]
    commit_deletes(folder, pa.table(columns, schema=_POSITIONS), 1, as_of=as_of)


def delete_values(
    folder: Path, rows: pa.Table, ids: Mapping[str, int], as_of: int | None = None
) -> None:
    """Add a snapshot with a file that deletes the rows with these values."""
    fields = [each.with_metadata({_FIELD_ID: str(ids[each.name]).encode()}) for each in rows.schema]
    commit_deletes(folder, rows.cast(pa.schema(fields)), 2, list(ids.values()), as_of=as_of)


def commit_deletes(
    folder: Path,
    rows: pa.Table,
    content: int,
    ids: Sequence[int] | None = None,
    partition: Mapping[str, Any] | None = None,
    as_of: int | None = None,
    **other: Any,
) -> None:
    """Add a snapshot with a file of deletes; `as_of` is the number of another commit."""
    file = folder / "data" / f"{uuid.uuid4()}-deletes.parquet"
    pq.write_table(rows, file)
    found = data_files(folder)[0]["data_file"]
    data_file = dict.fromkeys(found) | {
        "content": content,
        "file_path": file.as_uri(),
        "file_format": "PARQUET",
        "partition": partition or dict.fromkeys(found["partition"]),
        "record_count": rows.num_rows,
        "file_size_in_bytes": file.stat().st_size,
        "equality_ids": ids,
        **other,
    }
    commit_delete_files(folder, [data_file], as_of=as_of)


def commit_delete_files(
    folder: Path,
    files: Sequence[Mapping[str, Any]],
    changed: Callable[[Any], Any] = lambda schema: schema,
    is_replaced: Callable[[Mapping[str, Any]], bool] = lambda _: False,
    as_of: int | None = None,
) -> None:
    """Add a snapshot with files of deletes, without some of the manifests before."""
    document = json.loads(newest(folder).read_text())
    listed, list_schema, list_metadata = _manifests(folder)
    _, entry_schema, entry_metadata = _read(listed[0]["manifest_path"])
    number, id_ = document["last-sequence-number"] + 1, uuid.uuid4().int >> 66
    entries = [
        {"status": 1, "snapshot_id": id_, "sequence_number": as_of,
         "file_sequence_number": None, "data_file": each}
        for each in files
    ]  # fmt: skip
    metadata = {**entry_metadata, "content": "deletes"}
    schema = changed(entry_schema)
    manifest = _write(folder, f"{uuid.uuid4()}-m.avro", schema, entries, metadata)
    of_list = {
        **dict.fromkeys(listed[0], 0),
        "manifest_path": manifest.as_uri(),
        "manifest_length": manifest.stat().st_size,
        "content": 1,
        "sequence_number": number,
        "min_sequence_number": number,
        "added_snapshot_id": id_,
        "added_files_count": len(files),
        "added_rows_count": sum(each["record_count"] for each in files),
        "partition_spec_id": listed[0]["partition_spec_id"],
        "partitions": None,
        "key_metadata": None,
    }
    snapshot_list = _write(
        folder, f"snap-{id_}.avro", list_schema,
        [*(each for each in listed if not is_replaced(each)), of_list],
        {**list_metadata, "snapshot-id": str(id_), "sequence-number": str(number)},
    )  # fmt: skip
    _commit(folder, document, id_, number, snapshot_list)


def _commit(
    folder: Path, document: dict[str, Any], id_: int, number: int, snapshot_list: Path
) -> None:
    parent = document["current-snapshot-id"]
    moment = document["last-updated-ms"] + 1
    snapshot = {
        "snapshot-id": id_, "parent-snapshot-id": parent, "sequence-number": number,
        "timestamp-ms": moment, "manifest-list": snapshot_list.as_uri(),
        "summary": {"operation": "delete"}, "schema-id": document["current-schema-id"],
    }  # fmt: skip
    document["snapshots"].append(snapshot)
    document["snapshot-log"].append({"snapshot-id": id_, "timestamp-ms": moment})
    document["refs"]["main"]["snapshot-id"] = id_
    document |= {
        "current-snapshot-id": id_, "last-sequence-number": number, "last-updated-ms": moment,
    }  # fmt: skip
    write_metadata(folder, document)


def write_metadata(folder: Path, document: Mapping[str, Any]) -> Path:
    """Write the next metadata file of a table."""
    number = int(newest(folder).name.partition("-")[0]) + 1
    path = folder / "metadata" / f"{number:05}-{uuid.uuid4()}.metadata.json"
    path.write_text(json.dumps(document))
    return path


def manifest_list(folder: Path) -> Path:
    """Return the manifest list of the current snapshot."""
    document = json.loads(newest(folder).read_text())
    current = document["current-snapshot-id"]
    found = next(each for each in document["snapshots"] if each["snapshot-id"] == current)
    return local(found["manifest-list"])


def local(location: str) -> Path:
    """Return the path of a location on disk."""
    return Path(location.removeprefix("file://"))


def _manifests(folder: Path) -> tuple[list[dict[str, Any]], Any, dict[str, str]]:
    return _read(str(manifest_list(folder)))


def _read(location: str) -> tuple[list[dict[str, Any]], Any, dict[str, str]]:
    reader = fastavro.reader(io.BytesIO(local(location).read_bytes()))
    records = [dict(each) for each in reader]
    metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    return records, reader.writer_schema, metadata


def _write(
    folder: Path, name: str, schema: Any, records: Sequence[Any], metadata: Mapping[str, str]
) -> Path:
    path = folder / "metadata" / name
    with path.open("wb") as out:
        fastavro.writer(out, schema, records, metadata=dict(metadata))
    return path
