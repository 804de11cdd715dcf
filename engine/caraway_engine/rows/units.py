"""Rows in memory as indexes see them: batches that never change, and which of their rows are seen.

An index of a batch stays valid for all versions and positions that have the batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_engine.rows import held
from caraway_engine.rows.held import Chunk


@dataclass(frozen=True, slots=True, eq=False)
class RowUnit:
    """A batch with the rows that are seen: `seen` has a 1 for each, and a 0 for each other row.

    None stands for all. `key` and `place` name the batch: the object lives as long as its rows do.
    Keep `holder` while they are read.
    """

    batch: pa.RecordBatch
    key: object
    place: int
    holder: object
    seen: bytes | None = None


def of_chunk(table: TableName, schema: pa.Schema, chunk: Chunk) -> Iterator[RowUnit]:
    """Yield the rows of a chunk.

    Raises:
        ExecutionError: they have other types.
    """
    for place, batch in enumerate(held.cut(table, schema, chunk)):
        yield RowUnit(batch, chunk, place, chunk)
