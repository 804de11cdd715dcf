"""Chunks of accelerated datasets in memory, as the engine sees them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.protocols.results import ChunkInfo

BATCH_ROWS = 64 * 1024
"""An operator processes one batch at a time, so a whole table in one batch would use one core."""
SCANNED_ROWS = 8 * 1024
"""The rows of a batch that the engine computes on.

A scan lets other statements run once it has read 128 batches, whatever their size.
"""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Chunk:
    """A chunk in memory. Keep this object for as long as its rows are read."""

    batches: tuple[pa.RecordBatch, ...]


class Chunks(Protocol):
    """The chunks in memory, and the memory budget for what is built from them."""

    def held(self, chunk: ChunkInfo) -> Chunk | None: ...

    def count_bytes(self, table: TableName, size_bytes: int) -> object:
        """Count bytes as used for as long as the returned object is kept.

        Raises:
            OutOfMemoryQueryError: they do not fit.
        """
        ...


class NoChunks:
    """The chunks of an engine that only plans: none."""

    def held(self, chunk: ChunkInfo) -> Chunk | None:
        """Return None: no chunk is in memory."""
        return None

    def count_bytes(self, table: TableName, size_bytes: int) -> object:
        """Return None: memory is not counted."""
        return None


def scanned(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches that a scan reads, without copying rows."""
    for batch in batches:
        for start in range(0, batch.num_rows, SCANNED_ROWS):
            yield batch.slice(start, SCANNED_ROWS)


def cut(table: TableName, schema: pa.Schema, chunk: Chunk) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a chunk with the schema of a version, in batches of limited size.

    Raises:
        ExecutionError: they have other types.
    """
    for batch in chunk.batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield _under(schema, batch.slice(start, BATCH_ROWS), table)


def no_such_chunk(table: TableName) -> ExecutionError:
    """Return the error for a share that names chunks which the version does not have."""
    return ExecutionError(
        f"a task has a share of dataset '{table}' with chunks that its version does "
        "not have; this is a bug in the planner: please report it"
    )


def _under(schema: pa.Schema, batch: pa.RecordBatch, table: TableName) -> pa.RecordBatch:
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    if batch.schema.types != schema.types:
        raise ExecutionError(
            f"dataset '{table}': the types of its stored rows differ from those of its version; "
            "refresh the dataset"
        )
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
