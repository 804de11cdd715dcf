"""Datasets that are Delta Lake tables: the files of one version, read as Parquet."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from caraway_core.errors import DatasetError, DatasetErrorType
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import (
    FileScan,
    FilesTable,
    RemoteColumn,
    RemoteTable,
    StoreSpec,
    TableSpec,
    ranges,
)
from caraway_core.tables.ranges import ColumnRange
from caraway_plugins.sources import files, params, schemas, store_params

WRITTEN_PLACE = "uri"
"""The key of a table's place in the login of what writes to it; the others are of its store."""
_EXACT_DIGITS = 15
"""The log has the least and the greatest decimal of a file as doubles, which keep these digits."""
_STORES = ("s3", "gs", "abfss")
_READ = frozenset(
    {"columnMapping", "timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint",
     "vacuumProtocolCheck"}
)  # fmt: skip
"""Reader features that do not change how files are read. Column mapping may be listed but off."""
_VECTORS, _VARIANTS = "deletionVectors", frozenset({"variantType", "variantType-preview"})
"""Reader features that tables often have without using them."""
_MAPPING = "delta.columnMapping.mode"
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "s3": {"skip_signature": "aws_skip_signature", "allow_http": "aws_allow_http"},
    "gs": {"service_account": "google_service_account", "skip_signature": "google_skip_signature"},
    "abfss": {"token": "bearer_token", "sas_key": "azure_storage_sas_key"},
}
_PREFIXES = {"s3": "aws_", "gs": "google_", "abfss": "azure_storage_"}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a table is, for the library and for the engine."""

    uri: str
    root: str
    store: StoreSpec | None

    @property
    def options(self) -> dict[str, str] | None:
        if self.store is None:
            return None
        known, prefix = _OPTIONS[self.store.kind], _PREFIXES[self.store.kind]
        return {
            known.get(name, f"{prefix}{name}"): value for name, value in self.store.options.items()
        }


class DeltaSource:
    """A Delta Lake table in a folder or an object store, pinned to its version at load time."""

    capabilities = SourceCapabilities(projection=True, filters=True, limit=True, splits=True)

    def resolve(self, request: SourceRequest) -> TableSpec:
        place = _place(request)
        table = _opened(place, request)
        check(table)
        found = [(each.name, _type(each.type)) for each in pa.schema(table.schema().to_arrow())]
        schema = schemas.viewed(schemas.overridden(pa.schema(found), request.declared))
        keys = table.metadata().partition_columns
        actions = pa.table(table.get_add_actions()).to_pylist()
        scans = tuple(_scans(place, schema, keys, actions))
        writer = None
        if request.access == "read_write":
            writer = _written(place, request, table, schema)
        known = ranges.together(map(_ranges, actions))
        return FilesTable(schema, scans, _row_count(actions), writer, tuple(known.items()))

    def fingerprint(self, request: SourceRequest) -> str | None:
        table = _opened(_place(request), request)
        return f"{table.metadata().id}/{table.version()}"


def _place(request: SourceRequest) -> _Place:
    values = params.checked(request.connector, request.params)
    scheme, _, rest = request.path.partition("://")
    if scheme not in _STORES or not rest:
        root = files.local_path(request).rstrip("/")
        return _Place(root, root, None)
    path = store_params.parse(request.name, scheme, rest, values)
    store, key = path.store, path.key.strip("/")
    return _Place(
        f"{scheme}://{rest.rstrip('/')}", f"{store.kind}://{store.alias}/{key}".rstrip("/"), store
    )


def _written(
    place: _Place, request: SourceRequest, table: DeltaTable, shown: pa.Schema
) -> RemoteTable:
    """Return the table as its writer takes it. Its columns are those of the dataset."""
    login = {**(place.options or {}), WRITTEN_PLACE: place.uri}
    schema = pa.schema(table.schema().to_arrow())
    own = {each.name: schemas.plain(each.type) for each in schema}
    columns = tuple(_column(each, own.get(each.name)) for each in shown)
    return RemoteTable(schema, request.connector, (request.name,), columns, login)


def _column(field: pa.Field, own: pa.DataType | None) -> RemoteColumn:
    """Return a column of a dataset; one with another type in the table is not compared there."""
    type_ = schemas.plain(field.type)
    is_long = pa.types.is_decimal(type_) and type_.precision > _EXACT_DIGITS
    return RemoteColumn(field.name, type_, is_comparable=type_ == own and not is_long)


def _opened(place: _Place, request: SourceRequest) -> DeltaTable:
    """Open a table.

    Raises:
        DatasetError: there is no Delta table, or it cannot be read.
    """
    try:
        return DeltaTable(place.uri, storage_options=place.options)
    except TableNotFoundError as exc:
        raise DatasetError(
            "not_found", f"'{request.path}' is not a Delta table: it has no log in `_delta_log`"
        ) from exc
    except (DeltaError, OSError, ValueError) as exc:
        said = str(exc).splitlines()[0] if str(exc) else "the log cannot be read"
        kind: DatasetErrorType = "unavailable" if place.store is not None else "schema"
        raise DatasetError(
            kind, f"'{request.path}' cannot be read as a Delta table: {said}"
        ) from exc


def check(table: DeltaTable) -> None:
    """Reject a table whose rows its files alone do not determine.

    Raises:
        DatasetError: the table has deletion vectors, renamed columns or an unknown feature.
    """
    mode = table.metadata().configuration.get(_MAPPING, "none")
    if mode != "none":
        raise DatasetError(
            "invalid",
            f"the table maps its columns by {mode}, which is not supported; "
            f"rewrite it with '{_MAPPING}' set to none",
        )
    if unknown := sorted(_used_features(table) - _READ):
        remedy = ""
        if _VECTORS in unknown:
            remedy = "; purge the deleted rows with REORG TABLE ... APPLY (PURGE)"
        raise DatasetError(
            "invalid",
            f"the table needs reader features that are not supported: {', '.join(unknown)}{remedy}",
        )


def _used_features(table: DeltaTable) -> frozenset[str]:
    """Return the reader features of a table without those that this version does not use."""
    features = frozenset(table.protocol().reader_features or ())
    if _VECTORS in features and not _has_vectors(table):
        features -= {_VECTORS}
    if features & _VARIANTS and not _has_variants(json.loads(table.schema().to_json())):
        features -= _VARIANTS
    return features


def _has_vectors(table: DeltaTable) -> bool:
    try:
        return any(each.num_rows for each in table.deletion_vectors())
    except (DeltaError, OSError, ValueError):
        return True  # There are some, and they cannot be read.


def _has_variants(type_: object) -> bool:
    """Return whether a type of the log is, or has inside, one that may be of any type."""
    if not isinstance(type_, Mapping):
        return type_ == "variant"
    inner = [type_.get(each) for each in ("elementType", "keyType", "valueType")]
    return any(map(_has_variants, [*inner, *(each["type"] for each in type_.get("fields", ()))]))


def _type(type_: pa.DataType) -> pa.DataType:
    """Return the type with the inner field names of lists and maps that other sources use."""
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(_type(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([each.with_type(_type(each.type)) for each in type_])
    if pa.types.is_map(type_):
        return pa.map_(_type(type_.key_type), _type(type_.item_type))
    return schemas.plain(type_)


def _scans(
    place: _Place, schema: pa.Schema, keys: Sequence[str], actions: Sequence[Mapping[str, Any]]
) -> list[FileScan]:
    """Make one scan per partition, with the files of the partition."""
    inside = pa.schema([field for field in schema if field.name not in keys])
    columns = tuple(schema.field(name) for name in keys)

    def values(action: Mapping[str, Any]) -> tuple[str | None, ...]:
        found = action.get("partition") or {}
        return tuple(_text(found.get(name)) for name in keys)

    scans = []
    for group, members in groupby(sorted(actions, key=lambda each: repr(values(each))), values):
        found = sorted(members, key=lambda each: str(each["path"]))
        scans.append(
            FileScan(
                "parquet",
                tuple(_path(place, each["path"]) for each in found),
                inside,
                ".parquet",
                partition_columns=columns,
                partition_values=group if keys else None,
                store=place.store,
                size_bytes=sum(each["size_bytes"] for each in found),
                file_count=len(found),
            )
        )
    return scans


def _row_count(actions: Sequence[Mapping[str, Any]]) -> int | None:
    """Return how many rows the log says that the files have; None: not of all of them."""
    counts = [each.get("num_records") for each in actions]
    return None if None in counts else sum(map(int, filter(None, counts)))


def _ranges(action: Mapping[str, Any]) -> Mapping[str, ColumnRange]:
    """Return the ranges of columns that the log has of a file."""
    least, greatest = action.get("min") or {}, action.get("max") or {}
    found = {name: ranges.range_of(least[name], greatest.get(name)) for name in least}
    return {name: each for name, each in found.items() if each is not None}


def _path(place: _Place, path: str) -> str:
    """Return the location of a file; the log has its path URL-encoded, relative to the table."""
    plain = unquote(path)
    if "://" in plain or plain.startswith("/"):
        raise DatasetError(
            "invalid", f"file '{plain.rpartition('/')[2]}' of the table is not in its folder"
        )
    return f"{place.root}/{plain}"


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
