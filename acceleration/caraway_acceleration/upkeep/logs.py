"""Reads logs of changes, merges small entries, and extracts what outlives a compaction.

After a compaction, the position of the last change of each key in its source is kept. So late or
repeated changes can still be distinguished from new ones.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.changes import OFFSET, OP, SOURCE_BYTES, WITHOUT_KEY, Log, LogEntry, Op
from caraway_core.protocols.results import ResultStore

MOST_ENTRIES = 64
SMALL_ROWS = 8192
LEAST_GATHERED = 4
MOST_GATHERED = 64 * 1024
MOST_REMEMBERED = 200_000
ROWS_AT_ONCE = 500_000
_AFTER: dict[int, Op] = {
    Op.UPSERT: Op.SEEN,
    Op.KEEP: Op.SEEN,
    Op.SEEN: Op.SEEN,
    Op.DELETE: Op.GONE,
    Op.GONE: Op.GONE,
    Op.TRUNCATE: Op.EMPTIED,
    Op.EMPTIED: Op.EMPTIED,
}


def tail(log: Log) -> int:
    """Return how many of the last entries are small and should be merged into one.

    An entry is applied in one step, so the merged entry is limited in size.
    """
    if len(log) <= MOST_ENTRIES:
        return 0
    count = rows = 0
    for entry in reversed(log):
        added = entry.chunk.row_count
        rows += added
        if rows > MOST_GATHERED or (added >= SMALL_ROWS and count >= LEAST_GATHERED):
            break
        count += 1
    return count if count >= LEAST_GATHERED else 0


async def read(results: ResultStore, log: Log) -> pa.Table:
    """Return the changes of a log with at least one entry, in order.

    Raises:
        ExecutionError: an entry is missing or damaged.
    """
    batches: list[pa.RecordBatch] = []
    for entry in log:
        batches += [each async for each in results.read_chunk(entry.chunk.key, entry.chunk)]
    return pa.Table.from_batches(batches)


async def remember(results: ResultStore, log: Log, keys: Sequence[str]) -> pa.Table | None:
    """Return the result of `remembered` for a whole log, reading only a part at a time.

    Raises:
        ExecutionError: an entry is missing or damaged.
    """
    found: pa.Table | None = None
    for part in _parts(log):
        rows = await read(results, part)
        if found is not None:
            rows = pa.concat_tables([found, rows])
        found = await asyncio.to_thread(remembered, rows, keys)
    return found


def _parts(log: Log) -> Iterator[Log]:
    part: list[LogEntry] = []
    for entry in log:
        part.append(entry)
        if sum(each.chunk.row_count for each in part) >= ROWS_AT_ONCE:
            yield tuple(part)
            part = []
    if part:
        yield tuple(part)


def remembered(rows: pa.Table, keys: Sequence[str]) -> pa.Table | None:
    """Return the last change of each key and source, by offset; None if there is none.

    For each source, its last TRUNCATE is also kept, with a NULL key, so that older rows do not
    reappear. These are few, and all of them are kept.
    """
    placed = rows.filter(pc.is_valid(rows[OFFSET]))
    if not placed.num_rows or not keys:
        return None
    offsets = placed[OFFSET].to_pylist()
    ops = placed[OP].to_pylist()
    columns = [placed[key].to_pylist() for key in keys]
    last: dict[tuple[Any, ...], int] = {}
    emptied: dict[tuple[object, ...], int] = {}
    for number, (offset, op, *key) in enumerate(zip(offsets, ops, *columns, strict=True)):
        if op not in _AFTER:
            continue
        at = (offset[:SOURCE_BYTES], *key)
        found = emptied if op in WITHOUT_KEY else last
        known = found.pop(at, None)
        # Inserted last, so that the keys that changed longest ago are dropped first.
        found[at] = number if known is None or offset >= offsets[known] else known
    chosen = [*emptied.values(), *list(last.values())[-MOST_REMEMBERED:]]
    if not chosen:
        return None
    kept = placed.take(pa.array(chosen))
    arrays = [
        column if name in (*keys, OFFSET) else pa.nulls(len(chosen), column.type)
        for name, column in zip(kept.column_names, kept.columns, strict=True)
    ]
    arrays[kept.column_names.index(OP)] = pa.array([_AFTER[ops[n]] for n in chosen], pa.int8())
    return pa.Table.from_arrays(arrays, schema=kept.schema)
