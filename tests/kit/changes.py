"""Writes changes of accelerated datasets for tests."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from caraway_core.changes import OFFSET, OP, LogEntry, Op, log_schema
from caraway_core.partitions import hashing, naming
from caraway_core.partitions.keys import BucketKey, PartitionBy
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import Keys, ResultPlace, StoredTable
from caraway_plugins.stores.folder import FolderResultStore

Change = tuple[Op, dict[str, Any]] | tuple[Op, dict[str, Any], bytes | None]


def changed(schema: pa.Schema, changes: Sequence[Change]) -> pa.RecordBatch:
    """Return the rows of a log entry; columns that a change omits are NULL."""
    rows = [
        {**values, OP: int(op), OFFSET: offset[0] if offset else None}
        for op, values, *offset in changes
    ]
    return pa.RecordBatch.from_pylist(rows, schema=log_schema(schema))


def offset(number: int, source: str = "source") -> bytes:
    return source.encode().ljust(8)[:8] + number.to_bytes(8)


async def logged(folder: Path, spec: StoredTable, *changes: Change, number: int = 0) -> LogEntry:
    """Store a log entry under its own key."""
    key = f"{spec.key}-log"
    rows = changed(spec.schema, changes)
    chunk = await FolderResultStore(folder).write_chunk(key, number, rows.schema, [rows])
    return LogEntry(replace(chunk, key=key))


async def bucketed(
    folder: Path, rows: pa.Table, count: int, column: str, keys: Keys | None = None, key: str = "t"
) -> StoredTable:
    """Store rows partitioned into buckets, one chunk per non-empty bucket."""
    store = FolderResultStore(folder)
    chunks: list[ChunkInfo] = []
    found = hashing.bucket_of(rows.column(column), count)
    for number in range(count):
        held = rows.filter(pa.compute.equal(found, number)).combine_chunks()
        if held.num_rows:
            chunk = await store.write_chunk(key, number, rows.schema, held.to_batches())
            chunks.append(replace(chunk, partition=naming.name_of([number])))
    place = ResultPlace("file", str(folder))
    cut = PartitionBy((BucketKey(count, column),))
    return StoredTable(rows.schema, place, key, tuple(chunks), keys, cut)
