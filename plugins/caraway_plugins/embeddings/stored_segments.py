"""Segments of vectors in a result store: written once, named by their content.

A segment is one key of the store with two chunks. The first has the hashes of the texts, so that
an index is read without the vectors; the second has the vectors. The name of the key says all
that is needed to read the first chunk, whose metadata say the same of the second. So nothing else
must be kept, and every process that reaches the store finds the segments of all others.
"""

import asyncio
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caraway_core.errors import DamagedChunkError
from caraway_core.protocols.results import ChunkInfo, ResultStore
from caraway_plugins.stores import chunks

KEY_BYTES = 32
Hashes = NDArray[np.uint64]
_NAME = re.compile(
    r"(?P<mark>[0-9a-f]{16})-(?P<made>[0-9a-f]{11})-(?P<all>[0-9a-f]+)-"
    r"(?P<first>[0-9a-f]+)-(?P<rows>[0-9a-f]+)-(?P<checksum>[0-9a-f]{64})"
)
_VECTORS = b"caraway.vectors"


@dataclass(frozen=True, slots=True, order=True)
class SegmentName:
    """What the key of a segment says; older ones come first."""

    made_ms: int
    mark: str
    size_bytes: int
    first_bytes: int
    row_count: int
    checksum: str

    @property
    def key(self) -> str:
        """The key in the store."""
        return (
            f"{self.mark}-{self.made_ms:011x}-{self.size_bytes:x}-{self.first_bytes:x}-"
            f"{self.row_count:x}-{self.checksum}"
        )

    @classmethod
    def parse(cls, key: str) -> "SegmentName | None":
        """Return what a key says; None for keys of something else."""
        if (match := _NAME.fullmatch(key)) is None:
            return None
        made, size, first, rows = (int(match[n], 16) for n in ("made", "all", "first", "rows"))
        return cls(made, match["mark"], size, first, rows, match["checksum"])


@dataclass(frozen=True, slots=True)
class SegmentIndex:
    """The first 64 bits of the keys of a segment, and where its vectors are."""

    name: SegmentName
    hashes: Hashes
    vectors: ChunkInfo


def hash_of(key: bytes) -> int:
    """Return the part of a key by which it is looked up; segments have the whole key."""
    return int.from_bytes(key[:8], "little")


def listed(store: ResultStore) -> list[SegmentName]:
    """Return the segments of a store, oldest first.

    Raises:
        CarawayError: the store cannot be read.
    """
    names = map(SegmentName.parse, asyncio.run(_keys(store)))
    return sorted(name for name in names if name is not None)


def write(store: ResultStore, mark: str, made_ms: int, rows: Mapping[bytes, bytes]) -> SegmentIndex:
    """Store vectors under their keys.

    Raises:
        CarawayError: the store refused them.
    """
    keys, vectors = list(rows), list(rows.values())
    second = pa.record_batch(
        {
            "key": pa.array(keys, pa.binary(KEY_BYTES)),
            "vector": pa.array(vectors, pa.binary(len(vectors[0]))),
        }
    )
    of_vectors = _described(1, second)
    hashes = np.array([hash_of(key) for key in keys], np.uint64)
    first = pa.record_batch({"hash": pa.array(hashes)})
    first = first.replace_schema_metadata({_VECTORS: json.dumps(asdict(of_vectors)).encode()})
    of_hashes = _described(0, first)
    size_bytes = of_hashes.size_bytes + of_vectors.size_bytes
    name = SegmentName(
        made_ms, mark, size_bytes, of_hashes.size_bytes, len(keys), of_hashes.checksum
    )
    # The hashes come last: a segment whose vectors are not all there has no index.
    asyncio.run(_write(store, name.key, ((1, second), (0, first))))
    return SegmentIndex(name, hashes, of_vectors)


def index(store: ResultStore, name: SegmentName) -> SegmentIndex:
    """Read the hashes of a segment.

    Raises:
        DamagedChunkError: they are gone or changed.
        CarawayError: the store cannot be read.
    """
    chunk = ChunkInfo(0, name.row_count, name.first_bytes, name.checksum)
    table = asyncio.run(_read(store, name.key, chunk))
    try:
        described = json.loads(table.schema.metadata[_VECTORS])
        hashes = table.column("hash").to_numpy()
        return SegmentIndex(name, hashes, ChunkInfo.of_fields(described))
    except (KeyError, TypeError, ValueError) as exc:
        raise DamagedChunkError(f"segment '{name.key}' is no segment of vectors") from exc


def vectors(store: ResultStore, found: SegmentIndex) -> pa.Table:
    """Read the keys and vectors of a segment.

    Raises:
        DamagedChunkError: they are gone or changed.
        CarawayError: the store cannot be read.
    """
    return asyncio.run(_read(store, found.name.key, found.vectors))


def delete(store: ResultStore, name: SegmentName) -> None:
    """Delete a segment, if it is still there.

    Raises:
        CarawayError: the store refused it.
    """
    asyncio.run(_delete(store, name.key))


def _described(number: int, batch: pa.RecordBatch) -> ChunkInfo:
    """Return what the store will say of a chunk."""
    return chunks.write(io.BytesIO(), number, batch.schema, [batch])


async def _keys(store: ResultStore) -> Sequence[str]:
    return await store.keys()


async def _write(store: ResultStore, key: str, parts: Sequence[tuple[int, pa.RecordBatch]]) -> None:
    for number, batch in parts:
        await store.write_chunk(key, number, batch.schema, [batch])


async def _read(store: ResultStore, key: str, chunk: ChunkInfo) -> pa.Table:
    batches: list[object] = [batch async for batch in store.read_chunk(key, chunk)]
    if not batches:
        raise DamagedChunkError(f"segment '{key}' is empty")
    return pa.Table.from_batches(batches)


async def _delete(store: ResultStore, key: str) -> None:
    await store.delete(key)
