"""The seam to the place where answers of asynchronous queries wait for their reader."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ChunkInfo:
    """One stored piece of an answer, and the checksum that its bytes must have.

    Of a dataset that is cut into partitions each chunk holds rows of one, which `partition` names.
    `key` is the key that the chunk lies under, where it is not that of the table it belongs to.
    `home` names the executor that made it, where it is to be read there.
    """

    index: int
    row_count: int
    size_bytes: int
    sha256: str
    partition: str = ""
    key: str = ""
    home: str = ""


class ResultStore(Protocol):
    """Keeps answers as numbered chunks of Arrow IPC streams under a key each."""

    async def check(self) -> None:
        """Find out whether the store can be used as it stands.

        Raises:
            ResultStoreError: it cannot; the text says what to mend.
        """
        ...

    async def write_chunk(
        self, key: str, index: int, schema: pa.Schema, batches: Sequence[pa.RecordBatch]
    ) -> ChunkInfo:
        """Store one chunk; what this returned for is durable.

        A chunk that is stored again, as by another owner of the job, leaves the one of the
        earlier ChunkInfo readable.

        Raises:
            CarawayError: the key is not a plain name.
            ExecutionError: it cannot be stored, for example because the disk is full.
        """
        ...

    def read_chunk(self, key: str, chunk: ChunkInfo) -> AsyncIterator[pa.RecordBatch]:
        """Yield the batches of a chunk, once all of its bytes are checked.

        Raises:
            ExecutionError: the chunk is missing, or its bytes are not those that were written.
        """
        ...

    async def delete(self, key: str) -> None:
        """Remove every chunk of the key; nothing happens if there is none."""
        ...

    async def keys(self) -> Sequence[str]:
        """Return the keys that have chunks, sorted."""
        ...
