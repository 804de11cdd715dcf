"""A kind of table that no package knows: its rows are computed where they are read."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.tables import TableSpec, TableSplit, scanners
from caraway_core.tables.scanners import RowRequest


@dataclass(frozen=True, slots=True)
class NumbersSplit(TableSplit):
    """The squares of the numbers from `start` to before `end`."""

    start: int
    end: int

    @property
    def name(self) -> str:
        return f"{self.start} to {self.end}"

    @property
    def size_bytes(self) -> int:
        return 16 * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class SquaresTable(TableSpec):
    """The numbers below `count`, and their squares, in `parts` splits."""

    count: int
    parts: int = 1
    schema: pa.Schema = field(default=pa.schema([("n", pa.int64()), ("square", pa.int64())]))

    @property
    def size_bytes(self) -> int:
        return 16 * self.count

    @property
    def row_count(self) -> int:
        return self.count

    @property
    def splits(self) -> Sequence[NumbersSplit]:
        cuts = [self.count * number // self.parts for number in range(self.parts + 1)]
        return [NumbersSplit(*each) for each in itertools.pairwise(cuts)]


scanned: list[str] = []
"""The splits that this process was to scan."""


class _Rows:
    def __init__(self, ranges: Sequence[NumbersSplit], columns: Sequence[str]) -> None:
        self._ranges = ranges
        self._columns = columns

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for each in self._ranges:
            numbers = range(each.start, each.end)
            made = {"n": list(numbers), "square": [number**2 for number in numbers]}
            yield pa.record_batch(made, SquaresTable(0).schema).select(list(self._columns))

    def close(self) -> None: ...


class _Scanner:
    def scan(self, table: SquaresTable, request: RowRequest) -> _Rows:
        ranges = [each for each in request.splits if isinstance(each, NumbersSplit)]
        scanned.extend(each.name for each in ranges)
        return _Rows(ranges or table.splits, request.columns)


scanners.register(SquaresTable, _Scanner())
