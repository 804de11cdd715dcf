"""Datasets that are Iceberg tables: in a folder, in a bucket, or in a catalog."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import TableSpec
from caraway_plugins.iceberg import read_metadata
from caraway_plugins.iceberg.column_types import NoIcebergTypeError
from caraway_plugins.iceberg.read_metadata import NoSnapshotError, ReadMetadata
from caraway_plugins.sources import files as local_files
from caraway_plugins.sources import params
from caraway_plugins.sources.iceberg import (
    describing,
    finding,
    locations,
    planning,
    pointer_catalogs,
    pointers,
    rest,
)
from caraway_plugins.sources.iceberg.finding import FoundMetadata
from caraway_plugins.sources.iceberg.locations import TableFiles
from caraway_plugins.sources.iceberg.pointers import PointerPath

_DAMAGED = (LookupError, TypeError, ValueError, OSError, EOFError)
_SNAPSHOT = "iceberg_snapshot"
_TOKEN = "s3.session-token"
_RENEWED_S = 900.0
"""Catalogs give out credentials for an hour, and some for less."""


@dataclass(frozen=True, slots=True)
class _OpenedTable:
    """The metadata of a table, and what finds its files."""

    metadata: ReadMetadata
    files: TableFiles
    is_temporary: bool = False
    """True if its files are read with credentials that its catalog gives out."""


class IcebergSource:
    """An Iceberg table, pinned to the snapshot that is current when it is resolved."""

    capabilities = SourceCapabilities(projection=True, filters=True, limit=True, splits=True)

    def __init__(self, clock: SecondsClock = time.time) -> None:
        """Take the time, by which credentials of catalogs are renewed."""
        self._clock = clock

    def resolve(self, request: SourceRequest) -> TableSpec:
        opened = _opened(request)
        metadata, files = opened.metadata, opened.files
        with _worded(request):
            snapshot, schema = metadata.at(request.params.get(_SNAPSHOT, ""))
            planned = [] if snapshot is None else planning.plan(files, metadata, snapshot)
            return describing.describe(files, metadata, schema, planned, request.declared)

    def fingerprint(self, request: SourceRequest) -> str | None:
        if (path := pointers.path_of(request.path)) is not None:
            return pointer_catalogs.location(request, path)
        if not _is_in_catalog(request):
            found_metadata = _found(request, _files(request, {}))
            status = found_metadata.place.find()
            return f"{found_metadata.place.path} {status and (status.size_bytes, status.stamp)}"
        opened = _of_catalog(request)
        metadata = opened.metadata
        turn = int(self._clock() // _RENEWED_S) if opened.is_temporary else 0
        with _worded(request):
            snapshot, schema = metadata.at(request.params.get(_SNAPSHOT, ""))
            columns = f"{schema.id} {len(schema.fields)}"
            return f"{metadata.uuid} {snapshot and snapshot.id} {columns} {turn}"


def _is_in_catalog(request: SourceRequest) -> bool:
    return request.path.startswith(("http://", "https://"))


def _opened(request: SourceRequest) -> _OpenedTable:
    if (path := pointers.path_of(request.path)) is not None:
        return _of_pointer(request, path)
    return _of_catalog(request) if _is_in_catalog(request) else _of_folder(request)


def _of_pointer(request: SourceRequest, path: PointerPath) -> _OpenedTable:
    files = _files(request, {})
    place = files.place(pointer_catalogs.location(request, path))
    name = place.path.rpartition("/")[2]
    content = place.read(f"the metadata file '{name}' of the table, which its catalog names,")
    with _worded(request, f"the metadata file '{name}'"):
        return _OpenedTable(read_metadata.read(content), files)


def _of_folder(request: SourceRequest) -> _OpenedTable:
    files = _files(request, {})
    found_metadata = _found(request, files)
    name = found_metadata.place.path.rpartition("/")[2]
    content = found_metadata.place.read(f"the metadata file '{name}' of the table")
    with _worded(request, f"the metadata file '{name}'"):
        metadata = read_metadata.read(content)
    if found_metadata.folder is not None:
        files.moved(metadata.location, _written(request, found_metadata))
    return _OpenedTable(metadata, files)


def _of_catalog(request: SourceRequest) -> _OpenedTable:
    path = rest.path_of(request.path)
    if not path.table:
        raise DatasetError(
            "invalid",
            f"'{path.base}' names no table; write https://HOST/v1/namespaces/NAMESPACE/tables/TABLE",
        )
    with rest.connected(path, params.checked(request.connector, request.params)) as catalog:
        loaded = catalog.load(path.namespace, path.table)
    with _worded(request, "the metadata"):
        files = _files(request, loaded.config)
        is_temporary = _TOKEN in loaded.config
        return _OpenedTable(read_metadata.parsed(loaded.metadata), files, is_temporary)


def _files(request: SourceRequest, config: Mapping[str, str]) -> TableFiles:
    params.checked(request.connector, request.params)
    is_local = "://" not in request.path or _is_in_catalog(request)
    is_local = is_local or request.path.startswith("file://")
    is_local = is_local or pointers.path_of(request.path) is not None
    return TableFiles(str(request.name), locations.store_values(request.params, config), is_local)


def _found(request: SourceRequest, files: TableFiles) -> FoundMetadata:
    return finding.find(files.place(_root(request)))


def _root(request: SourceRequest) -> str:
    """Return where the table is, as its metadata would say it."""
    scheme, _, rest_ = request.path.partition("://")
    is_local = not rest_ or scheme == "file"
    return local_files.local_path(request) if is_local else request.path


def _written(request: SourceRequest, metadata: FoundMetadata) -> str:
    """Return the folder of a table as a location."""
    assert metadata.folder is not None
    scheme, _, rest_ = _root(request).partition("://")
    if not rest_:
        return metadata.folder
    return f"{scheme}://{rest_.partition('/')[0]}/{metadata.folder}".rstrip("/")


@contextmanager
def _worded(request: SourceRequest, what: str = "the metadata") -> Iterator[None]:
    """Translate errors of metadata to those of datasets."""
    try:
        yield
    except NoSnapshotError as exc:
        message = f"the table does not have what params.{_SNAPSHOT} names: {exc}"
        raise DatasetError("not_found", message) from exc
    except NoIcebergTypeError as exc:
        raise DatasetError("unsupported", f"the table cannot be read: {exc}") from exc
    except _DAMAGED as exc:
        raise DatasetError(
            "invalid",
            f"{what} of the Iceberg table '{request.name}' is cut or damaged; restore the file, or "
            "name an earlier one in `from`",
        ) from exc
