"""Writes changes of a dataset to the chunk store, as entries of its log."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby

import pyarrow as pa

from caraway_acceleration.versions import making
from caraway_acceleration.versions.version import DatasetVersion
from caraway_core import changes
from caraway_core.changes import Changes, LogEntry
from caraway_core.concurrency import tasks
from caraway_core.ids import TableName
from caraway_core.protocols.results import ResultStore

_FEW_ROWS = 4_096
"""Batches with fewer rows on average are joined before they are stored."""
ENTRY_BYTES = 16 * 1024 * 1024
_KEPT = timedelta(hours=1)
"""Chunks that no version names are removed after six hours, so older ones are written again."""


class LogEntries:
    """Writes the entries of one dataset in one process; a version has to name them to count."""

    def __init__(self, name: TableName, results: ResultStore) -> None:
        self._name = name
        self._results = results
        self._log_key, self._count, self._base = "", 0, ""

    async def written(
        self, standing: DatasetVersion, made: Sequence[Changes], now: datetime
    ) -> Sequence[LogEntry]:
        """Store changes in their order, unless their entries are stored already.

        All of them count with the version that names them.
        """
        log: list[LogEntry] = []
        for is_early, group in groupby(made, lambda each: self._is_early(each, now)):
            parts = list(group)
            if is_early:
                log += _made_now(parts)
            elif (rows := changes.joined(parts).rows).num_rows:
                log += await self._stored(standing, rows)
        return log

    def _is_early(self, made: Changes, now: datetime) -> bool:
        ages = [making.made_at(each.chunk.key, self._name) for each in made.entries]
        return bool(ages) and all(at is not None and now - at < _KEPT for at in ages)

    async def _stored(self, standing: DatasetVersion, rows: pa.Table) -> Sequence[LogEntry]:
        """Store changes; many become several entries, which are written at once."""
        count = max(1, round(rows.nbytes / ENTRY_BYTES))
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
        return await write(self._results, key, number, rows)


async def write(results: ResultStore, key: str, number: int, rows: pa.Table) -> LogEntry:
    """Store one entry under a key; it is durable when this returns.

    Raises:
        CarawayError: it cannot be stored.
    """
    batches = await asyncio.to_thread(_compact, rows)
    chunk = await results.write_chunk(key, number, rows.schema, batches)
    return LogEntry(replace(chunk, key=key, partition=""), _now_ms())


def _made_now(parts: Sequence[Changes]) -> Iterator[LogEntry]:
    """Yield entries as made now: changes count from when a version names them."""
    now_ms = _now_ms()
    return (replace(entry, made_ms=now_ms) for each in parts for entry in each.entries)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _compact(rows: pa.Table) -> list[pa.RecordBatch]:
    """Return the rows in few batches; batches that are large already are not copied."""
    batches: list[pa.RecordBatch] = rows.to_batches()
    if rows.num_rows >= _FEW_ROWS * len(batches):
        return batches
    whole: list[pa.RecordBatch] = rows.combine_chunks().to_batches()
    return whole
