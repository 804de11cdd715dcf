"""Where the files of a table are: locations in its metadata, and what opens them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from caraway_core.errors import DatasetError
from caraway_plugins.sources import store_params
from caraway_plugins.sources.buckets import BucketStorage
from caraway_plugins.sources.disk import Disk
from caraway_plugins.sources.params import Params
from caraway_plugins.sources.storage import FoundFile, WritableStorage

_TIMEOUT_S = 30.0
_CONNECTORS = {
    "s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "gcs": "gs", "abfss": "abfss",
    "abfs": "abfss", "wasbs": "abfss",
}  # fmt: skip
_MOST_METADATA_BYTES = 512 * 1024 * 1024


def is_known(location: str) -> bool:
    """Return whether a location is on a disk, or in a kind of store that can be read."""
    scheme, separator, rest = location.partition("://")
    return not separator or (bool(rest) and scheme in ("file", *_CONNECTORS))


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A file: its storage, and its path or key there."""

    storage: WritableStorage
    path: str

    def find(self) -> FoundFile | None:
        """Return the file, or None if it does not exist."""
        return self.storage.find(self.path)

    def read(self, what: str) -> bytes:
        """Return the content of a file of metadata.

        Raises:
            DatasetError: it is gone, too large, or cannot be read.
        """
        file = self.find()
        if file is None:
            raise DatasetError("not_found", f"{what} is gone")
        if file.size_bytes > _MOST_METADATA_BYTES:
            raise DatasetError("unsupported", f"{what} is larger than 512 MiB")
        return self.storage.read(self.path, 0, file.size_bytes)

    def write(self, content: BinaryIO) -> None:
        """Make the file.

        Raises:
            DatasetError: it cannot be written.
        """
        self.storage.write(self.path, content)


class TableFiles:
    """Finds the files that metadata name.

    `moved` is the location that the metadata say and the one where the table was found: a table
    may have been copied. Stores are opened once.
    """

    def __init__(self, name: str, params: Params, is_local: bool) -> None:
        self._name, self._params, self._is_local = name, params, is_local
        self._disk = Disk()
        self._buckets: dict[tuple[str, str], WritableStorage] = {}
        self._moved = ("", "")

    def moved(self, said: str, found: str) -> None:
        """Look for the files below one location below another one."""
        if said != found:
            self._moved = (f"{said.rstrip('/')}/", f"{found.rstrip('/')}/")

    def place(self, location: str) -> FilePlace:
        """Return where a location is.

        Raises:
            DatasetError: it is in a kind of store that is not known, or where it may not be.
        """
        said, found = self._moved
        if said and location.startswith(said):
            location = found + location.removeprefix(said)
        scheme, _, rest = location.partition("://")
        if not rest or scheme == "file":
            return self._local(location)
        if scheme not in _CONNECTORS:
            raise DatasetError(
                "unsupported",
                f"the table has files in '{scheme}://'; they are read from disk, s3, gs and abfss",
            )
        return self._in_bucket(_CONNECTORS[scheme], rest)

    def _local(self, location: str) -> FilePlace:
        if not self._is_local:
            raise DatasetError(
                "invalid", "the table is in a bucket, and its metadata name files of a disk"
            )
        path = location
        if location.startswith("file:"):
            path = unquote(urlsplit(location).path)
        if not path.startswith("/"):
            raise DatasetError(
                "invalid", "the metadata of the table name a file by a relative path"
            )
        return FilePlace(self._disk, path)

    def _in_bucket(self, connector: str, rest: str) -> FilePlace:
        bucket, _, key = rest.partition("/")
        if (connector, bucket) not in self._buckets:
            place = store_params.parse(self._name, connector, rest, self._params)
            timeout_s = self._params.seconds("client_timeout", _TIMEOUT_S)
            self._buckets[connector, bucket] = BucketStorage(place.store, timeout_s)
        return FilePlace(self._buckets[connector, bucket], key)


_S3 = {
    "iceberg_s3_endpoint": "s3_endpoint",
    "iceberg_s3_region": "s3_region",
    "iceberg_s3_access_key_id": "s3_key",
    "iceberg_s3_secret_access_key": "s3_secret",
    "iceberg_s3_session_token": "s3_session_token",
}
_VENDED = {
    "s3.endpoint": "s3_endpoint",
    "s3.region": "s3_region",
    "client.region": "s3_region",
    "s3.access-key-id": "s3_key",
    "s3.secret-access-key": "s3_secret",
    "s3.session-token": "s3_session_token",
}


def store_values(params: Mapping[str, str], vended: Mapping[str, str]) -> Params:
    """Return the params of stores; those of the manifest come before what a catalog gives out."""
    given = {_VENDED[key]: value for key, value in vended.items() if key in _VENDED}
    named = {_S3.get(name, name): value for name, value in params.items() if value}
    return Params({**given, **named})
