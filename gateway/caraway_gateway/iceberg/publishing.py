"""Writes the metadata of tables to where their readers find it. Its functions block."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from caraway_core.errors import DatasetError, UnavailableError
from caraway_core.ids import TableName
from caraway_core.tables import StoreSpec, TableSpec
from caraway_gateway.iceberg import histories, loaded_tables, states
from caraway_gateway.iceberg.histories import Listing
from caraway_gateway.iceberg.loaded_tables import LoadedTable, TableState, TableTitle
from caraway_gateway.iceberg.names import CATALOG, QualifiedName
from caraway_gateway.iceberg.states import TableContent
from caraway_plugins.iceberg import column_types, metadata, partitioning, view_metadata
from caraway_plugins.iceberg.column_types import IcebergSchema
from caraway_plugins.iceberg.history import TableHistory
from caraway_plugins.iceberg.metadata import TableSnapshot
from caraway_plugins.iceberg.partitioning import PartitionSpec
from caraway_plugins.sources import parquet_files
from caraway_plugins.sources.parquet_files import ParquetFile
from caraway_plugins.stores import parquet
from caraway_plugins.stores.published import Published

_METADATA = ".metadata.json"
_LOOKED_AT_MS = 30_000
"""Time for which a snapshot is listed although files of it may have been deleted."""
_FOREVER_MS = 2**63


def files(
    title: TableTitle,
    table: TableSpec,
    place: Published,
    listing: Listing,
    state: TableState | None = None,
) -> LoadedTable:
    """Publish the metadata of a table over Parquet files, unless the place has it.

    Without a `state`, it is that of the files. With one, the files are copies.

    Raises:
        DatasetError: a file cannot be read.
        NoIcebergTypeError: Iceberg cannot read the files as the table has them.
        ExecutionError: the place cannot be written.
    """
    found = parquet_files.find(table)
    names = _names_in_files(table)
    own_ids = _own_ids(found, names)
    before = histories.read(place, title.uuid)
    past = before.unless_contradicted(own_ids)
    ids = {**past.ids(column_types.schema(table.schema)), **own_ids}
    schema = column_types.schema(table.schema, ids, title.docs, past.last_id)
    spec = partitioning.spec(schema, _partition_columns(table))
    store = table.scans[0].store if table.scans else None
    is_copy = state is not None
    if state is None:
        newest_s = max((each.found.modified_s for each in found), default=0.0)
        state = TableState(_key(title, schema, spec, found), int(newest_s * 1000))
    properties = {
        **title.properties(),
        metadata.NAME_MAPPING: metadata.name_mapping(schema, names),
        "caraway.rows": loaded_tables.reach(store),
    }
    root = place.location(title.uuid)
    past, schema = past.described(
        schema, names, lambda own, last_id: metadata.described(root, own, spec, properties, last_id)
    )
    if past.current is None or past.current.key != state.key:
        new = TableContent(schema, spec, found, names)
        past = states.followed(title, past, new, place, state, is_copy=is_copy)
    return _listed(title.uuid, before, past, place, listing, store)


def known(
    title: TableTitle, key: str, place: Published, listing: Listing, store: StoreSpec | None
) -> LoadedTable | None:
    """Return a table that the place has in a state of an accelerated dataset.

    Raises:
        ExecutionError: the place cannot be used.
    """
    before = past = histories.read(place, title.uuid)
    earlier = past.with_key(key)
    if earlier is None:
        return None
    if earlier is past.current:
        past = past.in_use()
    else:
        now_ms = histories.now_ms()
        past = past.with_schema(earlier).followed_by(
            past.restored(earlier, now_ms), key, now_ms, is_copy=True
        )
    return _listed(title.uuid, before, past, place, listing, store)


def looked_at_again(table: LoadedTable, place: Published, listing: Listing) -> LoadedTable:
    """Return a table that was loaded with those of its snapshots that can be read still.

    Raises:
        ExecutionError: the place cannot be used.
    """
    uuid = table.metadata["table-uuid"]
    past = histories.read(place, uuid)
    later = replace(table, listed_until_ms=histories.now_ms() + _LOOKED_AT_MS)
    if past.current is None or past.current.key != table.key:  # Another scheduler is ahead.
        return later
    try:
        return _listed(uuid, past, past, place, listing, table.store)
    except DatasetError:  # A store that is away says nothing about its files.
        return later


def used(
    uuid: str, table: LoadedTable, place: Published, listing: Listing, *, is_current: bool
) -> frozenset[str]:
    """Return the keys of the states that snapshots of a table have.

    A copy that is not current is replaced by none before a client asks for one.

    Raises:
        ExecutionError: the place cannot be used.
    """
    before = past = histories.read(place, uuid)
    if not is_current:
        past = histories.outdated(past, table.key)
    with suppress(DatasetError):
        past = listing.readable(past, table.store)
    if past != before:
        histories.write(place, uuid, past)
    return past.keys | {table.key} if is_current else past.keys


def begin_copy(title: TableTitle, columns: pa.Schema, place: Published, key: str) -> None:
    """Say which ids the files of a copy give to columns: those that they have in other snapshots.

    Raises:
        NoIcebergTypeError: a column has a type that Iceberg lacks.
        ExecutionError: the place cannot be used.
    """
    past = histories.read(place, title.uuid)
    ids = past.ids(column_types.schema(columns))
    parquet.write_ids(place, states.home(title.uuid, key), ids, past.last_id)


def _listed(
    uuid: str,
    before: TableHistory,
    past: TableHistory,
    place: Published,
    listing: Listing,
    store: StoreSpec | None,
) -> LoadedTable:
    """Return a table with the snapshots that can be read, and write its history if it changed."""
    past = listing.readable(past, store)
    if past != before:
        histories.write(place, uuid, past)
    document = past.metadata(uuid)
    content = json.dumps(document).encode()
    key = past.snapshots[-1].key
    name = f"{states.home(uuid, key)}/{hashlib.sha256(content).hexdigest()[:16]}{_METADATA}"
    place.write(name, content)
    until_ms = listing.ends_ms(past)
    if any(each.lost for each in past.snapshots):
        until_ms = min(until_ms or _FOREVER_MS, histories.now_ms() + _LOOKED_AT_MS)
    return LoadedTable(
        document,
        place.location(name),
        loaded_tables.config(store),
        key,
        {each.id: each.key for each in past.snapshots},
        store,
        until_ms,
    )


def columns_only(
    title: TableTitle, columns: pa.Schema, reason: str, timestamp_ms: int
) -> LoadedTable:
    """Return a table whose rows are in no files. To read it fails; it does not look empty.

    Raises:
        NoIcebergTypeError: a column has a type that Iceberg lacks.
    """
    schema = column_types.schema(columns, docs=title.docs)
    location = f"caraway://{title.name}/rows-are-not-in-files"
    snapshot = TableSnapshot(_number(schema.document()), timestamp_ms, location)
    properties = {
        **title.properties(),
        metadata.NAME_MAPPING: metadata.name_mapping(schema, {}),
        "caraway.rows": f"none: {reason}",
    }
    table = metadata.described(location, schema, PartitionSpec(), properties, schema.last_id)
    document = metadata.document(title.uuid, table, [snapshot.document()], [schema.document()])
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
        QualifiedName.from_name(TableName(title.name)).schema,
        title.properties(),
        timestamp_ms,
    )
    answer = {"metadata-location": location, "metadata": document, "config": {}}
    return json.dumps(answer, separators=(",", ":")).encode()


def scan_tasks(loaded: LoadedTable, key: str, place: Published) -> list[dict[str, Any]]:
    """Return the files of a state of a published table as tasks of a scan.

    Raises:
        UnavailableError: they were deleted a moment ago.
        ExecutionError: the place cannot be read.
    """
    content = place.read(tasks_file(loaded, key))
    if content is None:
        raise UnavailableError("the table was replaced a moment ago; load it again")
    found: list[dict[str, Any]] = json.loads(content)
    return found


def tasks_file(loaded: LoadedTable, key: str) -> str:
    """Return the name of the file that has the tasks of a state of a published table."""
    return f"{states.home(loaded.metadata['table-uuid'], key)}/{states.TASKS}"


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


def _number(document: Mapping[str, object]) -> int:
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    return int(digest[:16], 16) >> 1 or 1
