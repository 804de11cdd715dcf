"""Chunks of accelerated datasets that are in memory, as the engine sees them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.protocols.results import ChunkInfo

BATCH_ROWS = 64 * 1024
"""An operator works on one batch at a time, so a batch of a whole table would occupy one core."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Chunk:
    """A chunk in memory. Whoever holds this holds its rows."""

    batches: tuple[pa.RecordBatch, ...]


class Chunks(Protocol):
    """The chunks that are in memory, and the memory for what is made of them."""

    def held(self, chunk: ChunkInfo) -> Chunk | None: ...

    def take(self, table: TableName, size_bytes: int) -> object:
        """Count bytes as taken for as long as what is returned is kept.

        Raises:
            OutOfMemoryQueryError: they do not fit.
        """
        ...


class NoChunks:
    """Of an engine that only plans."""

    def held(self, chunk: ChunkInfo) -> Chunk | None:
        return None

    def take(self, table: TableName, size_bytes: int) -> object:
        return None


def cut(table: TableName, schema: pa.Schema, chunk: Chunk) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a chunk under the schema of a version, not too many at once.

    Raises:
        ExecutionError: they are of other types.
    """
    for batch in chunk.batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield _under(schema, batch.slice(start, BATCH_ROWS), table)


def no_such_chunk(table: TableName) -> ExecutionError:
    return ExecutionError(
        f"a task has a share of dataset '{table}' with chunks that its version does "
        "not have; this is a bug in the planner: please report it"
    )


def _under(schema: pa.Schema, batch: pa.RecordBatch, table: TableName) -> pa.RecordBatch:
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    if batch.schema.types != schema.types:
        raise ExecutionError(
            f"dataset '{table}': its stored rows are of other types than its version says; "
            "refresh the dataset"
        )
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
