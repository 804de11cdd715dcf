"""Writes changes of a dataset to the chunk store, as entries of its log."""

import asyncio
import time
from collections.abc import Sequence

import pyarrow as pa

from caraway_acceleration.versions import making
from caraway_acceleration.versions.version import DatasetVersion
from caraway_core.changes import LogEntry
from caraway_core.concurrency import tasks
from caraway_core.ids import TableName
from caraway_core.protocols.results import ChunkInfo, ResultStore

_FEW_ROWS = 4_096
"""Batches with fewer rows on average are joined before they are stored."""
_ENTRY_BYTES = 16 * 1024 * 1024


class LogEntries:
    """Writes the entries of one dataset in one process; a version has to name them to count."""

    def __init__(self, name: TableName, results: ResultStore) -> None:
        self._name = name
        self._results = results
        self._log_key, self._count, self._base = "", 0, ""

    async def written(self, standing: DatasetVersion, rows: pa.Table) -> Sequence[LogEntry]:
        """Store changes; many become several entries, which are written at once.

        All of them count with the version that names them.
        """
        count = max(1, round(rows.nbytes / _ENTRY_BYTES))
        size = -(-rows.num_rows // count)
        parts = [rows.slice(start, size) for start in range(0, rows.num_rows, size)]
        return await tasks.together([self._write(standing, part) for part in parts])

    async def _write(self, standing: DatasetVersion, rows: pa.Table) -> LogEntry:
        """Store an entry under a key that belongs to the base and that only this process uses."""
        # An unnamed key may just be deleted by a collector. A key that the version names is safe:
        # removing it requires a new version, and then this entry is written again.
        if self._base != standing.key or self._log_key not in standing.keys:
            self._base, self._log_key = standing.key, making.key_of(self._name)
        self._count += 1
        key, number = self._log_key, self._count
        batches = await asyncio.to_thread(_compact, rows)
        chunk = await self._results.write_chunk(key, number, rows.schema, batches)
        return LogEntry(_keyed(chunk, key), time.time_ns() // 1_000_000)


def _compact(rows: pa.Table) -> list[pa.RecordBatch]:
    """Return the rows in few batches; batches that are large already are not copied."""
    batches: list[pa.RecordBatch] = rows.to_batches()
    if rows.num_rows >= _FEW_ROWS * len(batches):
        return batches
    whole: list[pa.RecordBatch] = rows.combine_chunks().to_batches()
    return whole


def _keyed(chunk: ChunkInfo, key: str) -> ChunkInfo:
    return ChunkInfo(chunk.index, chunk.row_count, chunk.size_bytes, chunk.sha256, "", key)
