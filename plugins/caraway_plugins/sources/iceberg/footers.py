"""The columns of data files, from their footers. They are kept, as the files never change."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq

from caraway_plugins.sources import parquet_files
from caraway_plugins.sources.iceberg.locations import FilePlace
from caraway_plugins.sources.parquet_files import ParquetFile
from caraway_plugins.sources.storage import FoundFile

_MOST = 50_000
SizedFile = tuple[FilePlace, int]


class _Kept:
    """The columns of files that were read; equal ones are one object."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], pa.Schema] = {}
        self._same: dict[bytes, pa.Schema] = {}
        self._lock = Lock()

    def get(self, file: SizedFile) -> pa.Schema | None:
        with self._lock:
            return self._found.get(_key(file))

    def keep(self, file: SizedFile, schema: pa.Schema) -> pa.Schema:
        with self._lock:
            same = self._same.setdefault(schema.serialize().to_pybytes(), schema)
            self._found[_key(file)] = same
            if len(self._found) > _MOST:
                self._found.clear()
                self._same.clear()
            return same


_kept = _Kept()


def columns(files: Sequence[SizedFile]) -> list[pa.Schema]:
    """Return the columns of files of Parquet, with the ids that they have.

    Raises:
        DatasetError: a file is gone, or damaged.
    """
    found = [_kept.get(each) for each in files]
    missing = [each for each, schema in zip(files, found, strict=True) if schema is None]
    read = iter(parquet_files.read_footers([_file(each) for each in missing], _schema))
    return [
        _kept.keep(each, next(read)) if schema is None else schema
        for each, schema in zip(files, found, strict=True)
    ]


def _file(file: SizedFile) -> ParquetFile:
    place, size_bytes = file
    return ParquetFile(place.storage, FoundFile(place.path, size_bytes, ""))


def _schema(_file: ParquetFile, footer: pq.FileMetaData) -> pa.Schema:
    return footer.schema.to_arrow_schema().remove_metadata()


def _key(file: SizedFile) -> tuple[str, int]:
    place, size_bytes = file
    return place.storage.location(place.path), size_bytes
