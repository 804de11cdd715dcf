"""The Parquet files of a table, one by one, with their footers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from caraway_core.errors import DatasetError
from caraway_core.tables import FileScan, StoreSpec, TableSpec
from caraway_plugins import object_stores
from caraway_plugins.sources import listing, partitions, storage
from caraway_plugins.sources.buckets import BucketStorage
from caraway_plugins.sources.disk import Disk
from caraway_plugins.sources.storage import FoundFile, Storage

T = TypeVar("T")
_TIMEOUT_S = 30.0
_READERS = 16


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """A file of a table. `values` are those of the table's partition columns, in their order."""

    storage: Storage
    found: FoundFile
    values: tuple[str | None, ...] = ()

    @property
    def location(self) -> str:
        """Where any client finds it: a URL of its store, or of its path on this machine."""
        store = self.storage.store
        if store is None:
            return f"file://{self.found.path}"
        return object_stores.public_url(store, self.found.path)

    def footer(self) -> pq.FileMetaData:
        """Read its footer.

        Raises:
            DatasetError: it is gone, or damaged.
        """
        try:
            if self.storage.store is None:
                return pq.read_metadata(self.found.path)
            with storage.opened(self.storage, self.found) as stream:
                return pq.ParquetFile(pa.PythonFile(stream, mode="r")).metadata
        except DatasetError:
            raise
        except FileNotFoundError as exc:
            raise self._failed("unavailable", "is gone; it was there a moment ago") from exc
        except (pa.ArrowException, OSError) as exc:
            raise self._failed("invalid", "is damaged or is not a Parquet file") from exc

    def _failed(self, kind: str, words: str) -> DatasetError:
        title = self.storage.title(self.found.path)
        return DatasetError("invalid" if kind == "invalid" else "unavailable", f"'{title}' {words}")


def find(table: TableSpec) -> list[ParquetFile]:
    """List the files that a statement would read now.

    Raises:
        DatasetError: they cannot be listed, or one of them is gone.
    """
    keys = [column.name for scan in table.scans for column in scan.partition_columns]
    order = list(dict.fromkeys(keys))
    return [each for scan in table.scans for each in _files(scan, order)]


def are_there(store: StoreSpec | None, files: Sequence[FoundFile]) -> bool:
    """Return whether files of a store are there as they were found.

    Raises:
        DatasetError: the store cannot be used.
    """
    place: Storage = Disk() if store is None else BucketStorage(store, _TIMEOUT_S)
    with ThreadPoolExecutor(_READERS, "files") as pool:
        found = pool.map(lambda each: place.find(each.path), files)
        return all(one == other for one, other in zip(found, files, strict=True))


def fingerprint(files: Iterable[ParquetFile]) -> str:
    """Return a text that changes when a file is added, removed or changed."""
    digest = hashlib.sha256()
    for each in files:
        file = each.found
        digest.update(f"{each.location}\0{file.size_bytes}\0{file.stamp}\0".encode())
    return digest.hexdigest()


def read_footers(
    files: Sequence[ParquetFile], use: Callable[[ParquetFile, pq.FileMetaData], T]
) -> list[T]:
    """Read the footers of files, and return what `use` makes of each.

    Those of a bucket are read some at a time. Threads make those of a disk slower.

    Raises:
        DatasetError: a file is gone, or damaged.
    """
    if all(each.storage.store is None for each in files):
        return [use(each, each.footer()) for each in files]
    with ThreadPoolExecutor(_READERS, "footers") as pool:
        return list(pool.map(lambda each: use(each, each.footer()), files))


def _files(scan: FileScan, order: Sequence[str]) -> list[ParquetFile]:
    place: Storage = Disk() if scan.store is None else BucketStorage(scan.store, _TIMEOUT_S)
    start = 0 if scan.store is None else len(f"{scan.store.kind}://{scan.store.alias}/")
    paths = [path[start:] for path in scan.paths]
    keys = [column.name for column in scan.partition_columns]
    if len(paths) == 1 and (not paths[0] or paths[0].endswith("/")):
        looked = listing.look(place, paths[0])
        return [
            ParquetFile(place, file, _ordered(order, dict(_pairs(file, looked.root))))
            for file in looked.files
            if file.path.endswith(scan.extension)
        ]
    values = _ordered(order, dict(zip(keys, scan.partition_values or (), strict=False)))
    with ThreadPoolExecutor(_READERS, "files") as pool:
        return [ParquetFile(place, each, values) for each in pool.map(_finder(place), paths)]


def _pairs(file: FoundFile, root: str) -> partitions.Values:
    return partitions.values_of(file.path[len(root) :])


def _ordered(order: Sequence[str], values: dict[str, str | None]) -> tuple[str | None, ...]:
    return tuple(values.get(key) for key in order)


def _finder(place: Storage) -> Callable[[str], FoundFile]:
    def find_one(path: str) -> FoundFile:
        file = place.find(path)
        if file is None:
            raise DatasetError("unavailable", f"'{place.title(path)}' is gone; it was there before")
        return file

    return find_one
