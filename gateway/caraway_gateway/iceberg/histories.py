"""Reads and writes the histories of tables, next to their metadata. Its functions block.

Schedulers that share a place may write one at once. The last one wins: each history is whole.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from caraway_core.tables import StoreSpec
from caraway_plugins.iceberg.history import LostFile, TableHistory
from caraway_plugins.iceberg.manifests import AddedBy
from caraway_plugins.sources import parquet_files
from caraway_plugins.sources.parquet_files import ParquetFile
from caraway_plugins.sources.storage import FoundFile
from caraway_plugins.stores.published import Published

_HISTORY = "history.json"
_FILES = "files.json"


@dataclass(frozen=True, slots=True)
class Listing:
    """Which snapshots clients see: copies for `kept_s` after they were replaced."""

    kept_s: float = 3600.0

    def readable(self, history: TableHistory, store: StoreSpec | None) -> TableHistory:
        """Return a history with the snapshots whose files are there still.

        Raises:
            DatasetError: the store cannot be used.
        """

        def are_there(files: Sequence[LostFile]) -> bool:
            return parquet_files.are_there(store, [FoundFile(*each) for each in files])

        return history.readable(now_ms(), int(self.kept_s * 1000), are_there)

    def ends_ms(self, history: TableHistory) -> int | None:
        """Return when the first of the snapshots that are listed is not any more; None: never."""
        ends = [
            each.replaced_ms + int(self.kept_s * 1000)
            for each in history.snapshots
            if each.is_copy and each.replaced_ms is not None
        ]
        return min(ends, default=None)


def now_ms() -> int:
    """Return the time in milliseconds since 1970."""
    return int(time.time() * 1000)


def read(place: Published, uuid: str) -> TableHistory:
    """Return the history of a table; an empty one where there is none that can be read.

    Raises:
        ExecutionError: the place cannot be read.
    """
    content = place.read(f"{uuid}/{_HISTORY}")
    try:
        return (
            TableHistory() if content is None else TableHistory.from_document(json.loads(content))
        )
    except (ValueError, KeyError, TypeError):  # Another release wrote it.
        return TableHistory()


def write(place: Published, uuid: str, history: TableHistory) -> None:
    """Write the history of a table.

    Raises:
        ExecutionError: the place cannot be written.
    """
    place.write(f"{uuid}/{_HISTORY}", json.dumps(history.document()).encode())


def files(place: Published, folder: str) -> Mapping[LostFile, AddedBy] | None:
    """Return the files of a state, with what added them; None where they are not known.

    Raises:
        ExecutionError: the place cannot be read.
    """
    content = place.read(f"{folder}/{_FILES}")
    if content is None:
        return None
    return {(path, size, stamp): AddedBy(*by) for path, size, stamp, *by in json.loads(content)}


def write_files(
    place: Published, folder: str, found: Sequence[ParquetFile], added: Sequence[AddedBy]
) -> None:
    """Write the files of a state, with what added them.

    Raises:
        ExecutionError: the place cannot be written.
    """
    entries = [
        [*identity(each), by.snapshot_id, by.sequence_number]
        for each, by in zip(found, added, strict=True)
    ]
    place.write(f"{folder}/{_FILES}", json.dumps(entries).encode())


def identity(file: ParquetFile) -> LostFile:
    """Return a value that distinguishes a file from one that replaces it."""
    return file.found.path, file.found.size_bytes, file.found.stamp


def outdated(history: TableHistory, key: str) -> TableHistory:
    """Return a history whose current snapshot is that of a state which no statement reads."""
    current = history.current
    if current is None or current.key != key or current.replaced_ms is not None:
        return history
    last = replace(current, replaced_ms=now_ms())
    return replace(history, snapshots=(*history.snapshots[:-1], last))
