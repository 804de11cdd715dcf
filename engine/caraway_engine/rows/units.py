"""Rows in memory as indexes see them: batches that never change, and which of their rows are seen.

An index of a batch stays valid for all versions and positions that have the batch.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import overload

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


class RowUnits(Sequence[RowUnit]):
    """Units in an order, and their rows as one table: what searches need again and again.

    Keep it for as long as the units are kept; threads may share it.
    """

    def __init__(self, units: Iterable[RowUnit]) -> None:
        self._units = tuple(units)
        self._columns: dict[str, pa.ChunkedArray] = {}

    @overload
    def __getitem__(self, number: int) -> RowUnit: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[RowUnit, ...]: ...
    def __getitem__(self, number: int | slice) -> RowUnit | tuple[RowUnit, ...]:
        return self._units[number]

    def __iter__(self) -> Iterator[RowUnit]:
        return iter(self._units)

    def __len__(self) -> int:
        return len(self._units)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The number of the first row of each unit, and the count of all rows."""
        return tuple(accumulate((each.batch.num_rows for each in self._units), initial=0))

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column of at least one unit: a chunk for each unit."""
        known = self._columns.get(name)
        if known is None:
            known = pa.chunked_array([each.batch.column(name) for each in self._units])
            self._columns[name] = known
        return known


def of_chunk(table: TableName, schema: pa.Schema, chunk: Chunk) -> Iterator[RowUnit]:
    """Yield the rows of a chunk.

    Raises:
        ExecutionError: they have other types.
    """
    for place, batch in enumerate(held.cut(table, schema, chunk)):
        yield RowUnit(batch, chunk, place, chunk)
