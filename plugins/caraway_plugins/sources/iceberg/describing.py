"""Makes the table of a snapshot: files that the engine reads, or a table with its own scanner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.protocols.remote import FILE, POSITION
from caraway_core.tables import FileScan, FilesTable, RemoteTable, TableSpec, ranges, structs
from caraway_plugins.iceberg import read_schemas
from caraway_plugins.iceberg.column_types import IcebergField, IcebergSchema
from caraway_plugins.iceberg.read_manifests import ListedFile
from caraway_plugins.iceberg.read_metadata import ReadMetadata
from caraway_plugins.sources import schemas
from caraway_plugins.sources.iceberg import bounds, columns
from caraway_plugins.sources.iceberg.columns import OwnField
from caraway_plugins.sources.iceberg.data_files import (
    Constants,
    DeleteFile,
    IcebergFile,
    VectorPlace,
)
from caraway_plugins.sources.iceberg.locations import TableFiles
from caraway_plugins.sources.iceberg.planning import PlannedFile
from caraway_plugins.sources.iceberg.scanning import (
    IcebergTable,
    PlacedIcebergTable,
    WrittenIcebergTable,
)

_RANGED = 1_000
"""Of about so many files ranges of columns are looked at."""
_ENDING = ".parquet"


@dataclass(frozen=True, slots=True)
class _Matched:
    """A file and its columns that are columns of the table; `constants` are those not in it."""

    file: PlannedFile
    pairs: tuple[tuple[OwnField, IcebergField], ...]
    constants: Constants

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """The names of its columns, in the file and in the table."""
        return tuple((own.name, field.name) for own, field in self.pairs)

    @property
    def bucket(self) -> str:
        store = self.file.place.storage.store
        return "" if store is None else store.alias

    def is_plain(self, names: frozenset[str]) -> bool:
        """Return whether its columns have the names that they have in the table."""
        others = names - {own for own, _ in self.names}
        return (
            not self.constants
            and all(own == name for own, name in self.names)
            and not any(each.name in others for each in self.file.own)
        )


def describe(
    files: TableFiles,
    metadata: ReadMetadata,
    schema: IcebergSchema,
    planned: Sequence[PlannedFile],
    declared: Sequence[pa.Field],
    writer: RemoteTable | None = None,
) -> TableSpec:
    """Return the table of data files with some columns; `writer` is for what writes to it.

    Raises:
        DatasetError: its deletes cannot be applied.
    """
    plain = pa.schema([(each.name, read_schemas.arrow_type(each.type)) for each in schema.fields])
    given = schemas.overridden(plain, declared)
    if not planned:
        viewed = schemas.viewed(given)
        return FilesTable(viewed, (), 0, writer)
    matched = [_matched(each, metadata, schema) for each in planned]
    if any(each.deletes for each in planned) or not all(map(_is_engines, matched)):
        table = _scanned(files, metadata, schema, given, matched)
        return table if writer is None else WrittenIcebergTable.of_table(table, writer)
    viewed = schemas.viewed(given)
    count = sum(each.listed.row_count for each in planned)
    scans = tuple(_scans(viewed, schema, matched))
    some = planned[:: len(planned) // _RANGED + 1]
    known = ranges.together(bounds.ranges_of(each.listed, schema.fields) for each in some)
    return FilesTable(viewed, scans, count, writer, tuple(known.items()))


def placed(
    files: TableFiles,
    metadata: ReadMetadata,
    schema: IcebergSchema,
    planned: Sequence[PlannedFile],
    snapshot_id: int | None,
) -> PlacedIcebergTable:
    """Return a snapshot whose rows have their places.

    Raises:
        DatasetError: its deletes cannot be applied.
    """
    places = [pa.field(FILE, pa.string()), pa.field(POSITION, pa.int64())]
    own = [pa.field(each.name, read_schemas.arrow_type(each.type)) for each in schema.fields]
    matched = [_matched(each, metadata, schema) for each in planned]
    table = _scanned(files, metadata, schema, pa.schema([*own, *places]), matched)
    listed = {each.listed.location: each.listed for each in planned}
    return PlacedIcebergTable(
        table.schema, table.fields, table.files, table.dropped, snapshot_id, listed
    )


def _matched(file: PlannedFile, metadata: ReadMetadata, schema: IcebergSchema) -> _Matched:
    own = {each.id: each for each in file.own if each.id is not None}
    pairs = [(own[each.id], each) for each in schema.fields if each.id in own]
    keys = metadata.specs.get(file.listed.spec_id, ())
    # Files of tables that were partitioned folders before do not have these columns.
    constants = [
        (key.source_id, value)
        for key, value in zip(keys, file.listed.partition, strict=False)
        if key.is_identity and key.source_id not in own
    ]
    return _Matched(file, tuple(pairs), tuple(constants))


def _is_engines(matched: _Matched) -> bool:
    """Return whether the engine reads a file by itself."""
    return bool(matched.pairs) and all(columns.is_alike(*pair) for pair in matched.pairs)


def _scans(given: pa.Schema, schema: IcebergSchema, matched: Sequence[_Matched]) -> list[FileScan]:
    """Make one scan of all files if possible: only then executors divide it."""
    names = frozenset(given.names)
    is_plain = all(each.is_plain(names) for each in matched)
    groups: dict[object, list[_Matched]] = {}
    for each in matched:
        named = None if is_plain else (each.names, each.constants)
        groups.setdefault((each.bucket, named), []).append(each)
    if is_plain:
        return [_scan(given, (), schema, members, given) for members in groups.values()]
    scans = []
    for members in groups.values():
        own = [given.field(name).with_name(own) for own, name in members[0].names]
        renamed = tuple(name for _, name in members[0].names)
        scans.append(_scan(pa.schema(own), renamed, schema, members, given))
    return scans


def _scan(
    own: pa.Schema,
    names: tuple[str, ...],
    schema: IcebergSchema,
    members: Sequence[_Matched],
    given: pa.Schema,
) -> FileScan:
    fields = {each.id: each for each in schema.fields}
    constants = [(fields[id_].name, value) for id_, value in members[0].constants if id_ in fields]
    places = [each.file.place for each in members]
    listed = [each.file.listed for each in members]
    return FileScan(
        "parquet",
        tuple(each.storage.location(each.path) for each in places),
        own,
        _ENDING if all(each.path.endswith(_ENDING) for each in places) else "",
        partition_columns=tuple(given.field(name) for name, _ in constants),
        partition_values=tuple(_text(value) for _, value in constants) if constants else None,
        store=places[0].storage.store,
        size_bytes=sum(each.size_bytes for each in listed),
        file_count=len(listed),
        column_bytes=_column_bytes(names or own.names, schema, listed),
        names=() if names == tuple(own.names) else names,
        is_unmasked=any(map(_has_required, members)),
    )


def _has_required(matched: _Matched) -> bool:
    return any(structs.has_required(pa.field("", each.type)) for each in matched.file.own)


def _column_bytes(
    names: Sequence[str], schema: IcebergSchema, listed: Sequence[ListedFile]
) -> tuple[int, ...]:
    if not all(each.column_sizes for each in listed):
        return ()
    by_name = {each.name: each for each in schema.fields}
    return tuple(
        sum(file.column_sizes.get(id_, 0) for file in listed for id_ in _ids(by_name.get(name)))
        for name in names
    )


def _ids(field: IcebergField | None) -> list[int]:
    if field is None:
        return []
    return [field.id, *(id_ for each in field.inner for id_ in _ids(each))]


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _scanned(
    files: TableFiles,
    metadata: ReadMetadata,
    schema: IcebergSchema,
    given: pa.Schema,
    matched: Sequence[_Matched],
) -> IcebergTable:
    known_fields = metadata.known_fields()
    current = {each.id for each in schema.fields}
    compared = {id_ for each in matched for file in each.file.deletes for id_ in file.equality_ids}
    if not compared <= known_fields.keys():
        raise DatasetError(
            "unsupported",
            "the table deletes rows by values of fields inside of others, or of unknown columns; "
            "rewrite its data files without the deleted rows",
        )
    dropped = tuple(known_fields[id_] for id_ in sorted(compared - current))
    iceberg_files = tuple(_data_file(files, each, schema) for each in matched)
    return IcebergTable(given, schema.fields, iceberg_files, dropped)


def _data_file(files: TableFiles, matched: _Matched, schema: IcebergSchema) -> IcebergFile:
    listed, place = matched.file.listed, matched.file.place
    ids = [each.id for each in schema.fields if isinstance(each.type, str)]
    return IcebergFile(
        place.path,
        listed.size_bytes,
        place.storage.store,
        listed.location,
        listed.row_count,
        matched.file.own,
        matched.constants,
        tuple((id_, listed.lower.get(id_), listed.upper.get(id_)) for id_ in ids),
        tuple(_delete_file(files, each, listed) for each in matched.file.deletes),
    )


def _delete_file(files: TableFiles, listed: ListedFile, data: ListedFile) -> DeleteFile:
    place = files.place(listed.location)
    vector = None
    if listed.vector_at is not None and listed.vector_bytes is not None:
        if listed.row_count > data.row_count:
            raise DatasetError("invalid", "a deletion vector has more rows than its data file")
        vector = VectorPlace(listed.vector_at, listed.vector_bytes, listed.row_count)
    store, size = place.storage.store, listed.size_bytes
    return DeleteFile(place.path, size, store, listed.equality_ids, vector)
