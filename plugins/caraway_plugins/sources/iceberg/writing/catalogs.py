"""Catalogs that move a table to its next snapshot, unless another writer was faster."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

import httpx

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.iceberg import added_snapshots
from caraway_plugins.sources import params
from caraway_plugins.sources.iceberg import pointer_catalogs, pointers, rest
from caraway_plugins.sources.iceberg.opening import OpenedTable
from caraway_plugins.sources.iceberg.pointers import PointerPath
from caraway_plugins.sources.iceberg.writing.row_files import TablePlace


class LostCommitError(DatasetError):
    """A commit was sent and has no answer; it may be carried out."""


@contextmanager
def sending() -> Iterator[None]:
    """Tell a commit that has no answer from work before it that failed."""
    try:
        yield
    except httpx.HTTPError as exc:
        raise LostCommitError("unavailable", "the catalog did not answer") from exc
    except DatasetError as exc:
        if exc.type != "unavailable":
            raise
        raise LostCommitError(exc.type, exc.message) from exc


class CommittingCatalog(Protocol):
    """A catalog of one table. Its methods block."""

    def commit(self, opened: OpenedTable, snapshot: Mapping[str, object]) -> bool:
        """Add a snapshot to a table as it was opened; False: the table has moved on.

        Raises:
            LostCommitError: it may be committed.
            DatasetError: it is not.
        """
        ...


def catalog_of(request: SourceRequest, metadata: TablePlace) -> CommittingCatalog:
    """Return the catalog of a table; `metadata` is where its metadata are made."""
    if (path := pointers.path_of(request.path)) is not None:
        return _PointerCatalog(request, path, metadata)
    return _RestCatalog(request)


class _RestCatalog:
    """A catalog that speaks REST: it writes the metadata."""

    def __init__(self, request: SourceRequest) -> None:
        self._request = request

    def commit(self, opened: OpenedTable, snapshot: Mapping[str, object]) -> bool:
        path = rest.path_of(self._request.path)
        given = params.checked(self._request.connector, self._request.params)
        with rest.connected(path, given) as catalog:
            body = added_snapshots.updates(opened.document, snapshot)
            with sending():
                return catalog.commit(path.namespace, path.table, body)


class _PointerCatalog:
    """A catalog that knows where the metadata are, which are written here."""

    def __init__(self, request: SourceRequest, path: PointerPath, metadata: TablePlace) -> None:
        self._request, self._path, self._metadata = request, path, metadata

    def commit(self, opened: OpenedTable, snapshot: Mapping[str, object]) -> bool:
        document = added_snapshots.followed(opened.document, snapshot, opened.location)
        content = io.BytesIO(json.dumps(document).encode())
        name = f"{_number(opened.location) + 1:05d}-{uuid.uuid4()}.metadata.json"
        location = self._metadata.write(content, name)
        catalog = pointer_catalogs.moving_catalog(self._path)
        assert catalog is not None
        with sending():
            is_moved = catalog.move(self._request, self._path, opened.location, location)
        if not is_moved:
            self._metadata.delete_file(location)
        return is_moved


def _number(location: str) -> int:
    """Return the number of a metadata file, which is 0 for names of other writers."""
    number = location.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdecimal() else 0
