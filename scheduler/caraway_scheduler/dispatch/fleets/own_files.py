"""Finds tables over files in the scheduler's cache, which executors on other hosts cannot read."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.protocols.fleet import OwnFile
from caraway_core.tables import FileScan, TableSpec

_MOST_BYTES = 1 << 30


class OwnFiles:
    """Finds the tables that are read from files below `folder`.

    A file there never changes under its path, so it is hashed only once.
    """

    def __init__(self, folder: Path, most_bytes: int = _MOST_BYTES) -> None:
        self._folder = os.path.realpath(folder) + "/"
        self._most_bytes = most_bytes
        self._known: dict[str, OwnFile] = {}

    def tables(self, tables: Mapping[TableName, TableSpec]) -> frozenset[TableName]:
        """Return the tables whose files may have other paths on executors."""
        return frozenset(name for name, spec in tables.items() if self._paths(spec))

    def find(self, tables: Mapping[TableName, TableSpec]) -> tuple[OwnFile, ...]:
        """Return the files, hashing new ones, which blocks. Missing files are left out."""
        found: dict[str, OwnFile] = {}
        for spec in tables.values():
            for path, scan in self._paths(spec).items():
                try:
                    found[path] = self._known.get(path) or self._described(path, scan)
                except OSError:
                    continue
        self._known = found
        return tuple(found.values())

    def _paths(self, spec: TableSpec) -> Mapping[str, FileScan]:
        return {
            path: scan
            for scan in spec.scans
            for path in scan.paths
            if scan.store is None and self._holds(path)
        }

    def _holds(self, path: str) -> bool:
        return not path.endswith("/") and os.path.realpath(path).startswith(self._folder)

    def _described(self, path: str, scan: FileScan) -> OwnFile:
        # The engine selects a format by the file extension.
        suffix = scan.extension if path.endswith(scan.extension) else ""
        with open(path, "rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            is_small = size_bytes <= self._most_bytes
            digest = hashlib.file_digest(file, "sha256").hexdigest() if is_small else ""
        return OwnFile(path, size_bytes, digest, suffix)


def content(file: OwnFile) -> pa.Buffer:
    """Memory-map a file and return its bytes.

    Raises:
        ExecutionError: the file no longer exists.
    """
    try:
        if not file.size_bytes:
            return pa.py_buffer(b"")
        with pa.memory_map(file.path) as mapped:
            return mapped.read_buffer()
    except OSError as exc:
        raise ExecutionError(
            "a file that the statement reads was removed from the scheduler's cache; run it again"
        ) from exc
