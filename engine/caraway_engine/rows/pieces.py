"""Rows in memory that are deleted one by one, as visible at each position of a log.

An ordinal counts the entries of a log: rows of the base were added at 0, and rows of the first
entry at 1. Position n shows the rows that were added at or before n and not deleted by then.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import OutOfMemoryQueryError
from caraway_engine.rows import choosing
from caraway_engine.rows.units import RowUnit

_MOST_CUTS = 1000
_MOST_PARTS = 64
"""Rows that were added in more parts become one, because each part adds cost to a search."""
Hold = Callable[[int], object]
"""Counts bytes as used for as long as the returned object is kept; may raise."""


@dataclass(frozen=True, slots=True, eq=False)
class VisibleRows:
    """Rows that are visible at a position, and an object to keep while they are read."""

    batch: pa.RecordBatch
    holder: object


class RowsKey:
    """Names rows that indexes cover, for as long as they are in memory."""

    __slots__ = ("__weakref__",)


class RowRange:
    """Consecutive rows in the order in which they were added, numbered from `first`.

    `parts` are the keys of rows that were added together, each with their number. They stay when
    ranges are joined, so that what is indexed is not indexed again.
    """

    def __init__(
        self,
        batch: pa.RecordBatch,
        first: int,
        births: Sequence[tuple[int, int]],
        holder: object,
        parts: Sequence[tuple[RowsKey, int]] = (),
    ) -> None:
        self.batch = batch
        self.first = first
        self.holder = holder
        self.source: RowUnit | None = None
        """The unit of the chunk that has these rows, if one has."""
        self.births = births
        """Ordinals, each with the number of rows that exist at it."""
        self._died: list[int] = []
        self._rows: list[int] = []
        self._deaths: dict[int, int] = {}
        self._kept: tuple[tuple[int, int, int], VisibleRows | None] | None = None
        self._parts = parts or [(RowsKey(), batch.num_rows)]
        self._units: tuple[tuple[int, int, int], Sequence[RowUnit]] | None = None
        self._mask = bytearray()
        self._masked = 0

    @property
    def end(self) -> int:
        """The number after the last row."""
        return self.first + int(self.batch.num_rows)

    def kill(self, number: int, ordinal: int) -> None:
        """Delete a row; ordinals must not decrease."""
        self._died.append(ordinal)
        self._rows.append(number - self.first)
        self._deaths[number - self.first] = ordinal

    def count(self, ordinal: int, since: int = 0) -> int:
        """Return the number of rows that are visible at a position, from number `since` on."""
        low, high = self._range(ordinal, since)
        dead = bisect_right(self._died, ordinal)
        if low <= 0 and high == self.batch.num_rows:
            return high - dead
        return high - low - sum(low <= row < high for row in self._rows[:dead])

    def seen(self, ordinal: int, since: int, hold: Hold) -> Sequence[VisibleRows]:
        """Return the rows that are visible at a position, from number `since` on.

        Raises:
            OutOfMemoryQueryError: a copy without the deleted rows does not fit.
        """
        low, high = self._range(ordinal, since)
        dead = bisect_right(self._died, ordinal)
        if low >= high:
            return ()
        if not dead:
            return (VisibleRows(self.batch.slice(low, high - low), self.holder),)
        if self._kept is None or self._kept[0] != (low, high, dead):
            self._kept = None  # Free it before the next one is made.
            try:
                rows = self._filtered(low, high, dead, hold)
            except OutOfMemoryQueryError:
                if dead > _MOST_CUTS:
                    raise
                # Deleting rows must not make the rest unreadable.
                return self._between(low, high, dead)
            self._kept = (low, high, dead), rows
        rows = self._kept[1]
        return (rows,) if rows is not None else ()

    def units(self, ordinal: int, since: int) -> Sequence[RowUnit]:
        """Return the rows with what is visible at a position; nothing if that is nothing.

        The units are the same until something else is visible.
        """
        low, high = self._range(ordinal, since)
        dead = bisect_right(self._died, ordinal)
        if low >= high:
            return ()
        if self._units is None or self._units[0] != (low, high, dead):
            self._units = (low, high, dead), self._made_units(self._flags(low, high, dead))
        return self._units[1]

    def _made_units(self, seen: bytes | None) -> Sequence[RowUnit]:
        if self.source is not None:
            return (replace(self.source, holder=self.holder, seen=seen),)
        made = []
        start = 0
        for key, count in self._parts:
            flags = None if seen is None else seen[start : start + count]
            made.append(RowUnit(self.batch.slice(start, count), key, 0, self.holder, flags))
            start += count
        return made

    def is_seen(self, number: int, ordinal: int) -> bool:
        """Return whether a row is visible at a position."""
        row = number - self.first
        _, high = self._range(ordinal, 0)
        return row < high and self._deaths.get(row, ordinal + 1) > ordinal

    def joined(self, others: Sequence["RowRange"], hold: Hold) -> "RowRange":
        """Join consecutive pieces into one."""
        pieces = [self, *others]
        births: list[tuple[int, int]] = []
        for piece in pieces:
            before = piece.first - self.first
            births += [(ordinal, before + count) for ordinal, count in piece.births]
        batch = pa.concat_batches([piece.batch for piece in pieces])
        parts = [part for piece in pieces for part in piece._parts]
        if len(parts) > _MOST_PARTS:
            parts = []
        row_range = RowRange(batch, self.first, births, hold(batch.nbytes), parts)
        died = sorted(
            (ordinal, piece.first + row)
            for piece in pieces
            for ordinal, row in zip(piece._died, piece._rows, strict=True)
        )
        for ordinal, number in died:
            row_range.kill(number, ordinal)
        return row_range

    def _range(self, ordinal: int, since: int) -> tuple[int, int]:
        born = bisect_right(self.births, ordinal, key=lambda birth: birth[0])
        high = self.births[born - 1][1] if born else 0
        return max(0, since - self.first), high

    def _between(self, low: int, high: int, dead: int) -> Sequence[VisibleRows]:
        """Return the slices between deleted rows: no copy is made, but scans are slower."""
        ends = [*sorted(row for row in self._rows[:dead] if low <= row < high), high]
        starts = [low, *(row + 1 for row in ends[:-1])]
        return [
            VisibleRows(self.batch.slice(start, end - start), self.holder)
            for start, end in zip(starts, ends, strict=True)
            if start < end
        ]

    def _flags(self, low: int, high: int, dead: int) -> bytes | None:
        """Return a 1 for each row that is visible and a 0 for each other; None if all are."""
        count = self.batch.num_rows
        if not dead and low == 0 and high == count:
            return None
        self._bury(dead)
        return b"".join((bytes(low), memoryview(self._mask)[low:high], bytes(count - high)))

    def _filtered(self, low: int, high: int, dead: int, hold: Hold) -> VisibleRows | None:
        self._bury(dead)
        lives = pa.Array.from_buffers(
            pa.uint8(), self.batch.num_rows, [None, pa.py_buffer(self._mask)]
        )
        lives = pc.equal(lives.slice(low, high - low), pa.scalar(1, pa.uint8()))
        batch = choosing.filtered(self.batch.slice(low, high - low), lives)
        return (
            VisibleRows(batch, (self.holder, hold(choosing.size_bytes(batch))))
            if batch.num_rows
            else None
        )

    def _bury(self, dead: int) -> None:
        """Let `_mask` have a 0 for each of the rows that died first, and a 1 for each other."""
        if dead < self._masked or len(self._mask) != self.batch.num_rows:
            self._masked = 0
            self._mask = bytearray(b"\1") * self.batch.num_rows
        for row in self._rows[self._masked : dead]:
            self._mask[row] = 0
        self._masked = dead
