"""The protocol of result stores, which keep the results of asynchronous queries."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ChunkInfo:
    """The description of one stored chunk, with the checksum of its bytes.

    In a partitioned dataset all rows of a chunk belong to the partition `partition`. `key` is the
    key of the chunk in the store if it differs from its table's. `home` names the executor that
    made the chunk, if it is to be read there.
    """

    index: int
    row_count: int
    size_bytes: int
    checksum: str
    partition: str = ""
    key: str = ""
    home: str = ""

    @classmethod
    def of_fields(cls, stored: Mapping[str, Any]) -> Self:
        """Return the chunk whose fields were stored by their names.

        Raises:
            TypeError: they are not those of a chunk.
        """
        # Releases whose checksums were SHA-256 named the field so.
        return cls(**{"checksum" if name == "sha256" else name: stored[name] for name in stored})


class ChunkWriter(Protocol):
    """Writes rows as numbered chunks, under one key for all of them."""

    async def write_chunk(
        self, key: str, index: int, schema: pa.Schema, batches: Sequence[pa.RecordBatch]
    ) -> ChunkInfo:
        """Store one chunk; the chunk is durable when this returns.

        If a chunk is stored again, for example by another owner of the job, the chunk of the
        earlier ChunkInfo stays readable.

        Raises:
            CarawayError: the key is not a plain name.
            ExecutionError: the chunk cannot be stored, for example because the disk is full.
        """
        ...


class ResultStore(ChunkWriter, Protocol):
    """Stores results as numbered chunks of Arrow IPC streams, under one key per result."""

    async def write_chunk(
        self,
        key: str,
        index: int,
        schema: pa.Schema,
        batches: Sequence[pa.RecordBatch],
        checksum: str = "",
    ) -> ChunkInfo:
        """Store one chunk; the chunk is durable when this returns.

        With the `checksum` of a chunk that is stored again, the chunk takes its place if the bytes
        are the same.
        """
        ...

    async def check(self) -> None:
        """Check that the store can be used.

        Raises:
            ResultStoreError: it cannot be used; the message says what to repair.
        """
        ...

    def read_chunk(self, key: str, chunk: ChunkInfo) -> AsyncIterator[pa.RecordBatch]:
        """Yield the batches of a chunk, after a check of all of its bytes.

        Raises:
            ExecutionError: the chunk is missing or damaged.
        """
        ...

    async def delete(self, key: str) -> None:
        """Delete all chunks of the key, if there are any."""
        ...

    async def keys(self) -> Sequence[str]:
        """Return the keys that have chunks, sorted."""
        ...
