"""Opens Iceberg tables: in a folder, in a bucket, or in a catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.iceberg import read_metadata
from caraway_plugins.iceberg.column_types import NoIcebergTypeError
from caraway_plugins.iceberg.read_metadata import NoSnapshotError, ReadMetadata
from caraway_plugins.sources import files as local_files
from caraway_plugins.sources import params
from caraway_plugins.sources.iceberg import finding, locations, pointer_catalogs, pointers, rest
from caraway_plugins.sources.iceberg.finding import FoundMetadata
from caraway_plugins.sources.iceberg.locations import TableFiles
from caraway_plugins.sources.iceberg.pointers import PointerPath

SNAPSHOT = "iceberg_snapshot"
_DAMAGED = (LookupError, TypeError, ValueError, OSError, EOFError)
_TOKEN = "s3.session-token"


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """The metadata of a table, and what finds its files."""

    document: Mapping[str, Any]
    metadata: ReadMetadata
    files: TableFiles
    is_temporary: bool = False
    """True if its files are read with credentials that its catalog gives out."""
    location: str = ""
    """The location of its metadata file, for catalogs that store only this location."""


def is_in_catalog(request: SourceRequest) -> bool:
    """Return whether a catalog that speaks REST has a table."""
    return request.path.startswith(("http://", "https://"))


def open_table(request: SourceRequest) -> OpenedTable:
    """Open a table as it is now.

    Raises:
        DatasetError: it is not there, cannot be read, or has a form that is not supported.
    """
    if (path := pointers.path_of(request.path)) is not None:
        return _of_pointer(request, path)
    return of_catalog(request) if is_in_catalog(request) else _of_folder(request)


def _of_pointer(request: SourceRequest, path: PointerPath) -> OpenedTable:
    files = table_files(request, {})
    location = pointer_catalogs.location(request, path)
    place = files.place(location)
    name = place.path.rpartition("/")[2]
    content = place.read(f"the metadata file '{name}' of the table, which its catalog names,")
    with worded(request, f"the metadata file '{name}'"):
        document = read_metadata.document(content)
        return OpenedTable(document, read_metadata.parsed(document), files, location=location)


def _of_folder(request: SourceRequest) -> OpenedTable:
    files = table_files(request, {})
    found = found_metadata(request, files)
    name = found.place.path.rpartition("/")[2]
    content = found.place.read(f"the metadata file '{name}' of the table")
    with worded(request, f"the metadata file '{name}'"):
        document = read_metadata.document(content)
        metadata = read_metadata.parsed(document)
    if found.folder is not None:
        files.moved(metadata.location, _written(request, found))
    return OpenedTable(document, metadata, files)


def of_catalog(request: SourceRequest) -> OpenedTable:
    """Open a table of a catalog that speaks REST."""
    path = rest.path_of(request.path)
    if not path.table:
        raise DatasetError(
            "invalid",
            f"'{path.base}' names no table; write https://HOST/v1/namespaces/NAMESPACE/tables/TABLE",
        )
    with rest.connected(path, params.checked(request.connector, request.params)) as catalog:
        loaded = catalog.load(path.namespace, path.table)
    with worded(request, "the metadata"):
        files = table_files(request, loaded.config)
        is_temporary = _TOKEN in loaded.config
        metadata = read_metadata.parsed(loaded.metadata)
        return OpenedTable(loaded.metadata, metadata, files, is_temporary)


def table_files(request: SourceRequest, config: Mapping[str, str]) -> TableFiles:
    """Return what finds the files of a table; `config` is what its catalog gives out."""
    params.checked(request.connector, request.params)
    is_local = "://" not in request.path or is_in_catalog(request)
    is_local = is_local or request.path.startswith("file://")
    is_local = is_local or pointers.path_of(request.path) is not None
    return TableFiles(str(request.name), locations.store_values(request.params, config), is_local)


def found_metadata(request: SourceRequest, files: TableFiles) -> FoundMetadata:
    """Find the newest metadata of a table in a folder."""
    return finding.find(files.place(root(request)))


def root(request: SourceRequest) -> str:
    """Return where a folder is, as metadata would say it."""
    scheme, _, rest_ = request.path.partition("://")
    if scheme == "file":
        return unquote(urlsplit(request.path).path)
    return request.path if rest_ else local_files.local_path(request)


def _written(request: SourceRequest, metadata: FoundMetadata) -> str:
    """Return the folder of a table as a location."""
    assert metadata.folder is not None
    scheme, _, rest_ = root(request).partition("://")
    if not rest_:
        return metadata.folder
    return f"{scheme}://{rest_.partition('/')[0]}/{metadata.folder}".rstrip("/")


@contextmanager
def worded(request: SourceRequest, what: str = "the metadata") -> Iterator[None]:
    """Translate errors of metadata to those of datasets."""
    try:
        yield
    except NoSnapshotError as exc:
        message = f"the table does not have what params.{SNAPSHOT} names: {exc}"
        raise DatasetError("not_found", message) from exc
    except NoIcebergTypeError as exc:
        raise DatasetError("unsupported", f"the table cannot be read: {exc}") from exc
    except _DAMAGED as exc:
        raise DatasetError(
            "invalid",
            f"{what} of the Iceberg table '{request.name}' is cut or damaged; restore the file, or "
            "name an earlier one in `from`",
        ) from exc
