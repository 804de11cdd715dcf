"""Stores rows of accelerated datasets as chunks in a folder."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from caraway_core.partitions.keys import PartitionBy, parse
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.storing import kept_schema
from caraway_core.tables import Keys, ResultPlace, StoredTable
from caraway_executor.storage.parting import Parting
from caraway_plugins.stores.folder import FolderResultStore


async def stored(folder: Path, rows: pa.Table, count: int = 1, key: str = "t") -> StoredTable:
    """Store rows in a number of chunks."""
    store = FolderResultStore(folder)
    size = max(1, -(-rows.num_rows // count))
    chunks: list[ChunkInfo] = []
    for number, start in enumerate(range(0, rows.num_rows, size)):
        batches = rows.slice(start, size).to_batches()
        chunks.append(await store.write_chunk(key, number, rows.schema, batches))
    return StoredTable(rows.schema, ResultPlace("file", str(folder)), key, tuple(chunks))


def path_of(table: StoredTable, number: int = 0) -> Path:
    """Return the file of a chunk."""
    chunk = table.chunks[number]
    name = f"{chunk.index:08d}-{chunk.checksum}.arrow"
    return Path(table.place.path) / table.key / name


async def parted(
    folder: Path, rows: pa.Table, *terms: str, key: str = "t", keys: Keys | None = None
) -> StoredTable:
    """Store rows by partition, one chunk each; the last columns are values of expressions."""
    store = FolderResultStore(folder)
    cut = PartitionBy(tuple(map(parse, terms)))
    schema = kept_schema(rows.schema, cut)
    parts = [
        part for batch in rows.combine_chunks().to_batches()
        for part in Parting(cut, rows.schema).parts(batch)
    ]  # fmt: skip
    chunks = [
        replace(await store.write_chunk(key, number, schema, [batch]), partition=name)
        for number, (name, batch) in enumerate(parts)
    ]
    place = ResultPlace("file", str(folder))
    return StoredTable(schema, place, key, tuple(chunks), keys, cut)
