"""Which files of a table clients may open with access that the runtime gives them."""

from __future__ import annotations

import re
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, unquote, urlsplit

from caraway_core.errors import InvalidRequestError, NotFoundError, QueryForbiddenError
from caraway_core.ids import TableName
from caraway_core.tables import StoreSpec
from caraway_gateway.iceberg import plan_pages, publishing, states, vending
from caraway_gateway.iceberg.loaded_tables import LoadedTable
from caraway_gateway.iceberg.names import CATALOG, QualifiedName
from caraway_gateway.iceberg.vending import OpenedPart
from caraway_plugins import object_stores
from caraway_plugins.stores.published import Published

SIGNED_S = 60.0
"""Time within which a signed request may be sent."""
_METHODS: Mapping[str, Literal["GET", "HEAD"]] = {"GET": "GET", "HEAD": "HEAD"}
_MOST_LENGTH = 8192
_PUBLISHED = re.compile(r"[0-9A-Za-z]{1,80}\.(avro|metadata\.json)")
_PLANNED = re.compile(r"([0-9a-f]{32})/data/[0-9A-Za-z_.-]{1,200}\.parquet")
_MOST_KNOWN = 64
_HARMLESS = re.compile(r"(x-id=(Get|Head)Object)?")


@dataclass(frozen=True, slots=True)
class SignRequest:
    """A request to a store that a client cannot sign itself."""

    method: Literal["GET", "HEAD"]
    uri: str

    @classmethod
    def from_document(cls, document: Mapping[str, object]) -> SignRequest:
        """Read the body of a request.

        Raises:
            InvalidRequestError: it has no form of the protocol.
            QueryForbiddenError: it would not only read.
        """
        method, uri = document.get("method"), document.get("uri")
        if not isinstance(method, str) or not isinstance(uri, str) or len(uri) > _MOST_LENGTH:
            raise InvalidRequestError("the request body needs the texts 'method' and 'uri'")
        found = _METHODS.get(method.upper())
        if found is None:
            raise QueryForbiddenError(f"'{method[:20]}' is not signed; GET and HEAD are")
        return cls(found, uri)


def key_in(store: StoreSpec, uri: str) -> str | None:
    """Return the key of the object in a bucket of S3 that a URI names; None: it names none.

    Parts of requests that ask for something else than an object, such as `?acl`, name none.
    """
    try:
        parts = urlsplit(uri)
        host = parts.netloc.lower()
        path = unquote(parts.path, errors="strict")
    except ValueError:
        return None
    is_plain = parts.scheme in ("http", "https") and not parts.fragment
    if not is_plain or not _HARMLESS.fullmatch(parts.query):
        return None
    if host in _hosts(store):
        bucket, _, key = path.removeprefix("/").partition("/")
    elif host in {f"{store.bucket}.{each}" for each in _hosts(store)}:
        bucket, key = store.bucket, path.removeprefix("/")
    else:
        return None
    has_steps = all(step not in ("", ".", "..") for step in key.split("/"))
    return key if bucket == store.bucket and has_steps else None


def _hosts(store: StoreSpec) -> set[str]:
    """Return the hosts of a store, without those of its buckets."""
    if endpoint := store.options.get("endpoint"):
        return {urlsplit(endpoint).netloc.lower()}
    region = store.options.get("region", "us-east-1")
    return {"s3.amazonaws.com", f"s3.{region}.amazonaws.com"}


def is_published(location: str, folder: str) -> bool:
    """Return whether a location is that of metadata in the folder of a state."""
    below = location.removeprefix(f"{folder}/")
    return below != location and _PUBLISHED.fullmatch(below) is not None


def signed(store: StoreSpec, request: SignRequest, key: str) -> dict[str, Any]:
    """Return the answer to a client that may read an object. This may block.

    The URL is made here. Nothing of what the client sent is in it.

    Raises:
        QueryForbiddenError: the store has nothing to sign with.
    """
    try:
        uri = object_stores.signed_url(store, request.method, key, SIGNED_S)
    except ValueError as exc:
        raise QueryForbiddenError(str(exc)) from exc
    return {"uri": uri, "headers": {}}


class FilesOfTables:
    """The files that the snapshots of tables have. Its methods block."""

    def __init__(self, place: Published) -> None:
        self._place = place
        self._known: OrderedDict[str, dict[str, frozenset[str]]] = OrderedDict()
        self._reading = threading.Lock()

    def sign(
        self,
        request: SignRequest,
        table: LoadedTable,
        stores: Iterable[StoreSpec | None],
        principal: str,
        name: str,
    ) -> dict[str, object]:
        """Return the answer to a client that may read a file of a table in one of some stores.

        Raises:
            QueryForbiddenError: the request is for another file, or its store signs nothing.
            CarawayError: the place cannot be read.
        """
        for store in stores:
            key = None if store is None else key_in(store, request.uri)
            if store is None or key is None:
                continue
            where = object_stores.public_url(store, key)
            if self.has(table, where) or self.is_planned(where, principal, name):
                return signed(store, request, key)
        raise QueryForbiddenError(f"the request does not read a file of '{name}'")

    def has(self, table: LoadedTable, location: str) -> bool:
        """Return whether a file belongs to a snapshot that a table lists, or to its metadata.

        Raises:
            ExecutionError: the place cannot be read.
        """
        uuid = table.metadata["table-uuid"]
        folders = [self._place.location(states.home(uuid, key)) for key in table.states.values()]
        if any(is_published(location, each) for each in folders):
            return True
        return any(location in each for each in self._data(table))

    def is_planned(self, location: str, principal: str, table: str) -> bool:
        """Return whether a file was exported for a scan of a principal.

        Raises:
            ExecutionError: the place cannot be read.
        """
        start = self._place.location(f"{plan_pages.FOLDER}/")
        match = _PLANNED.fullmatch(location.removeprefix(start))
        if match is None or not location.startswith(start):
            return False
        try:
            plan_pages.owner(self._place, match[1], principal, table)
        except NotFoundError:
            return False
        return True

    def opened(self, table: LoadedTable, store: StoreSpec | None) -> list[OpenedPart]:
        """Return what has the files of a table: its data, and its metadata in the place's store.

        Raises:
            CarawayError: the place cannot be read.
        """
        if not table.states:
            return []
        folder = self._place.location(f"{table.metadata['table-uuid']}/")
        data = frozenset[str]().union(*self._data(table))
        own = [each for each in data if not each.startswith(folder)]
        parts = [] if table.store is None else vending.parts(table.store, own)
        if store is not None and store.kind == "s3":
            parts.append(OpenedPart(store, folder.removeprefix(f"s3://{store.bucket}/")))
        return parts

    def _data(self, table: LoadedTable) -> Sequence[frozenset[str]]:
        """Return the data files of each state that a table lists; each list is read once."""
        uuid = table.metadata["table-uuid"]
        with self._reading:
            known = self._known.pop(uuid, {})
            self._known[uuid] = found = {
                key: known[key] if key in known else self._read(table, key)
                for key in table.states.values()
            }
            if len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
        return list(found.values())

    def _read(self, table: LoadedTable, key: str) -> frozenset[str]:
        tasks = publishing.scan_tasks(table, key, self._place)
        # Most files are in many states.
        return frozenset(sys.intern(each["data-file"]["file-path"]) for each in tasks)


def signing_config(name: TableName) -> dict[str, str]:
    """Return how clients of a table ask for signatures, at a path below the URL of the catalog."""
    called = QualifiedName.from_name(name)
    path = f"namespaces/{quote(called.schema, '')}/tables/{quote(called.name, '')}"
    endpoint = f"v1/{CATALOG}/{path}/sign"
    return {
        "s3.remote-signing-enabled": "true",
        "s3.signer": "S3V4RestSigner",
        "s3.signer.endpoint": endpoint,
        "signer.endpoint": endpoint,
        "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
    }
