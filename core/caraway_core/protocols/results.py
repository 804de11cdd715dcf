"""The seam to the place where answers of asynchronous queries wait for their reader."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ChunkInfo:
    """One stored piece of an answer, and the checksum that its bytes must have."""

    index: int
    row_count: int
    size_bytes: int
    sha256: str


class ResultStore(Protocol):
    """Keeps answers as numbered chunks of Arrow IPC streams under a key each."""

    async def write_chunk(
        self, key: str, index: int, schema: pa.Schema, batches: Sequence[pa.RecordBatch]
    ) -> ChunkInfo:
        """Store one chunk; what this returned for is durable."""
        ...

    def read_chunk(self, key: str, chunk: ChunkInfo) -> AsyncIterator[pa.RecordBatch]:
        """Yield the batches of a chunk.

        Raises:
            ExecutionError: the chunk is missing, or its bytes are not those that were written.
        """
        ...

    async def delete(self, key: str) -> None:
        """Remove every chunk of the key; nothing happens if there is none."""
        ...

    async def keys(self) -> Sequence[str]: ...
