"""Accelerated datasets: rows as chunks in a folder."""

from pathlib import Path

import pyarrow as pa

from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import ResultPlace, StoredTable
from caraway_plugins.stores.folder import FolderResultStore


async def stored(folder: Path, rows: pa.Table, count: int = 1, key: str = "t") -> StoredTable:
    """Store rows in so many chunks."""
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
    name = f"{chunk.index:08d}-{chunk.sha256}.arrow"
    return Path(table.place.path) / table.key / name
