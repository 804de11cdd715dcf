"""Lists, reads and writes files in object stores."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

import obstore
from obstore import exceptions

from caraway_core.errors import DatasetError
from caraway_core.tables import StoreSpec
from caraway_plugins import object_stores
from caraway_plugins.sources.storage import FoundFile

if TYPE_CHECKING:  # obstore's types exist for the type checker only
    from obstore import ObjectMeta


class BucketStorage:
    """Implements `WritableStorage` for one bucket or container."""

    has_folders = True

    def __init__(self, store: StoreSpec, timeout_s: float) -> None:
        self.store: StoreSpec | None = store
        self._spec = store
        self._client = self._connect(store, timeout_s)

    def listing(self, folder: str) -> Iterator[FoundFile]:
        try:
            for chunk in obstore.list(self._client, prefix=folder.rstrip("/") or None):
                # Prefixes match whole path segments; the folder itself may exist as an empty
                # object.
                yield from (_found(each) for each in chunk if each["path"].startswith(folder))
        except Exception as exc:
            raise self._worded(folder, exc) from exc

    def folders(self, folder: str) -> Sequence[str]:
        try:
            found = obstore.list_with_delimiter(self._client, prefix=folder.rstrip("/") or None)
        except Exception as exc:
            raise self._worded(folder, exc) from exc
        return [each.rstrip("/").rpartition("/")[2] for each in found["common_prefixes"]]

    def find(self, path: str) -> FoundFile | None:
        try:
            return _found(obstore.head(self._client, path))
        except (exceptions.NotFoundError, FileNotFoundError):
            return None
        except Exception as exc:
            raise self._worded(path, exc) from exc

    def read(self, path: str, start: int, end: int) -> bytes:
        try:
            return bytes(obstore.get_range(self._client, path, start=start, end=end))
        except Exception as exc:
            raise self._worded(path, exc) from exc

    def write(self, path: str, content: BinaryIO) -> None:
        try:
            obstore.put(self._client, path, content)
        except Exception as exc:
            raise self._worded(path, exc) from exc

    def delete(self, path: str) -> None:
        try:
            obstore.delete(self._client, path)
        except (exceptions.NotFoundError, FileNotFoundError):
            pass
        except Exception as exc:
            raise self._worded(path, exc) from exc

    def location(self, path: str) -> str:
        return f"{self._spec.kind}://{self._spec.alias}/{path}"

    def title(self, path: str) -> str:
        return object_stores.title(self._spec, path)

    def _connect(self, spec: StoreSpec, timeout_s: float) -> object_stores.Client:
        try:
            return object_stores.connect(spec, timeout_s)
        except ValueError as exc:
            raise DatasetError("invalid", str(exc)) from exc

    def _worded(self, path: str, exc: Exception) -> DatasetError:
        trouble = object_stores.trouble(self.title(path), exc)
        return DatasetError(trouble.type, trouble.message)


def _found(meta: "ObjectMeta") -> FoundFile:
    modified = meta["last_modified"]
    stamp = meta["e_tag"] or modified.isoformat()
    return FoundFile(meta["path"], meta["size"], stamp, modified.timestamp())
