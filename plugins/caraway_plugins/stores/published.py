"""Files that other systems read: in a folder, or under a prefix of a bucket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import obstore

from caraway_core.errors import CarawayError, ResultStoreAwayError, ResultStoreError
from caraway_core.process import disks
from caraway_core.tables import ResultPlace, StoreSpec
from caraway_plugins import object_stores
from caraway_plugins.stores.durable import UnfinishedFiles

_TIMEOUT_S = 30.0
_WORKSHOP = ".unfinished"


class Published(Protocol):
    """Files by name. Names are paths of plain steps, and contents never change."""

    def location(self, name: str) -> str:
        """Return where other systems find a file."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return a file, or None if there is none."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write a file; it is there as a whole or not at all."""
        ...

    def folders(self, folder: str) -> Sequence[str]:
        """Return the names of the folders in a folder, sorted."""
        ...

    def delete(self, folder: str) -> None:
        """Delete all files of a folder."""
        ...


def opened(place: ResultPlace) -> Published:
    """Return the files at a place.

    Raises:
        ResultStoreError: other systems cannot read there, or it cannot be written.
    """
    if place.kind == "file":
        return _Folder(Path(place.path))
    if place.kind == "bucket" and place.store is not None:
        return _Bucket(place.store, place.path.strip("/"))
    raise ResultStoreError(
        "other systems cannot read a caraway store; name a folder that they reach, or a bucket"
    )


class _Folder:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._workshop = UnfinishedFiles(root / _WORKSHOP)
        with self._failing("cannot be written"):
            self._workshop.open()

    def location(self, name: str) -> str:
        return f"file://{self._root / name}"

    def read(self, name: str) -> bytes | None:
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise disks.failure(f"'{name}' cannot be read", exc) from exc

    def write(self, name: str, content: bytes) -> None:
        target = self._root / name
        with self._failing(f"'{name}' cannot be written"), self._workshop.unfinished() as handle:
            target.parent.mkdir(parents=True, exist_ok=True)
            handle.write(content)
            self._workshop.publish(handle, target)

    def folders(self, folder: str) -> Sequence[str]:
        try:
            found = [each.name for each in (self._root / folder).iterdir() if each.is_dir()]
        except FileNotFoundError:
            return []
        except OSError as exc:
            raise disks.failure(f"'{folder}' cannot be listed", exc) from exc
        return sorted(name for name in found if name != _WORKSHOP)

    def delete(self, folder: str) -> None:
        with self._failing(f"'{folder}' cannot be deleted"):
            self._workshop.discard(self._root / folder)

    @contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            raise disks.failure(f"published files: {what}", exc) from exc


class _Bucket:
    def __init__(self, store: StoreSpec, prefix: str) -> None:
        self._spec = store
        self._prefix = f"{prefix}/" if prefix else ""
        try:
            self._client = object_stores.connect(store, _TIMEOUT_S)
        except ValueError as exc:
            raise ResultStoreError(f"published files: {exc}") from exc

    def location(self, name: str) -> str:
        return object_stores.public_url(self._spec, self._prefix + name)

    def read(self, name: str) -> bytes | None:
        with self._failing(name, "be read"):
            try:
                return bytes(obstore.get(self._client, self._prefix + name).bytes())
            except Exception as exc:
                if object_stores.is_missing_object(exc):
                    return None
                raise

    def write(self, name: str, content: bytes) -> None:
        with self._failing(name, "be written"):
            obstore.put(self._client, self._prefix + name, content)

    def folders(self, folder: str) -> Sequence[str]:
        under = f"{self._prefix}{folder}/" if folder else self._prefix
        with self._failing(folder, "be listed"):
            list_result = obstore.list_with_delimiter(self._client, under or None)
        return sorted(
            path.rstrip("/").rpartition("/")[2] for path in list_result["common_prefixes"]
        )

    def delete(self, folder: str) -> None:
        with self._failing(folder, "be deleted"):
            object_metas = obstore.list(self._client, f"{self._prefix}{folder}/").collect()
            if paths := [each["path"] for each in object_metas]:
                obstore.delete(self._client, paths)

    @contextmanager
    def _failing(self, name: str, what: str) -> Iterator[None]:
        try:
            yield
        except CarawayError:
            raise
        except Exception as exc:
            trouble = object_stores.trouble(object_stores.title(self._spec, name), exc)
            kind = ResultStoreAwayError if trouble.type == "unavailable" else ResultStoreError
            raise kind(f"published files cannot {what}: {trouble.message}") from exc
