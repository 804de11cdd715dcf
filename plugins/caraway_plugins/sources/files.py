"""Datasets that are files on the local disk or in an object store."""

from pathlib import Path

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import FilesTable, TableSpec
from caraway_plugins.sources import (
    assembly,
    file_columns,
    listing,
    params,
    schemas,
    shapes,
    snapshots,
    store_params,
)
from caraway_plugins.sources.buckets import BucketStorage
from caraway_plugins.sources.decoded import resolving
from caraway_plugins.sources.disk import Disk
from caraway_plugins.sources.listing import FileListing
from caraway_plugins.sources.params import Params
from caraway_plugins.sources.storage import Storage

_TIMEOUT_S = 30.0


class LocalFiles:
    """A file, a folder or a glob pattern on the local disk."""

    capabilities = SourceCapabilities(projection=True, filters=True, limit=True, splits=True)

    def resolve(self, request: SourceRequest) -> TableSpec:
        return read(Disk(), local_path(request), _local_params(request), request)

    def fingerprint(self, request: SourceRequest) -> str | None:
        return look(Disk(), local_path(request), _local_params(request), request).fingerprint()


class ObjectFiles:
    """A key, a prefix or a glob pattern in S3, Google Cloud Storage or Azure Data Lake Storage."""

    capabilities = SourceCapabilities(projection=True, filters=True, limit=True, splits=True)

    def resolve(self, request: SourceRequest) -> TableSpec:
        values = _bucket_params(request)
        place = store_params.parse(request.name, request.connector, request.path, values)
        return read(_bucket(place, values), place.key, values, request)

    def fingerprint(self, request: SourceRequest) -> str | None:
        values = _bucket_params(request)
        place = store_params.parse(request.name, request.connector, request.path, values)
        return look(_bucket(place, values), place.key, values, request).fingerprint()


def read(storage: Storage, path: str, values: Params, request: SourceRequest) -> TableSpec:
    """Inspect the files of a path, and combine them into one table.

    Raises:
        DatasetError: the files are missing, unreadable, rejected, or do not fit together.
    """
    file_listing = look(storage, path, values, request)
    if snapshots.is_wanted(values):
        values = snapshots.as_files(values)
    if file_listing.columns is not None and not file_listing.files:
        return FilesTable(schemas.overridden(file_listing.columns, request.declared), ())
    has_columns = file_columns.are_wanted(values)
    declared = (*(file_columns.FIELDS if has_columns else ()), *request.declared)
    if (format_ := resolving.format_of(file_listing, values)) is not None:
        timeout_s = values.seconds("client_timeout", _TIMEOUT_S)
        return resolving.resolve(storage, file_listing, format_, values, declared, timeout_s)
    files = shapes.read(storage, file_listing, values, request.declared)
    if has_columns:
        files = file_columns.added(storage, files)
    return assembly.assemble(storage, file_listing, files, values, declared)


def look(storage: Storage, path: str, values: Params, request: SourceRequest) -> FileListing:
    """List the files of a path, or those of a snapshot that another runtime wrote there.

    Raises:
        DatasetError: there are no files, or access is denied.
    """
    if snapshots.is_wanted(values):
        return snapshots.look(storage, path, request.name)
    return listing.look(storage, path)


def local_path(request: SourceRequest) -> str:
    """Make the path absolute; accepts `file:///a`, `file:a` and `file:~/a`."""
    path = request.path
    while path.startswith("//"):
        path = path[1:]
    if not path:
        raise DatasetError("invalid", "`from: file:` has no path")
    # Links are not resolved here, so that names stay as the user wrote them.
    absolute = str(Path(request.base_dir).absolute() / Path(path).expanduser())
    return absolute + "/" if path.endswith("/") else absolute


def _local_params(request: SourceRequest) -> Params:
    return params.checked(request.connector, request.params)


def _bucket_params(request: SourceRequest) -> Params:
    return params.checked(request.connector, request.params)


def _bucket(place: store_params.StorePath, values: Params) -> BucketStorage:
    return BucketStorage(place.store, values.seconds("client_timeout", _TIMEOUT_S))
