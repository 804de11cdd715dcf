"""Merges the rows of a partition with a log, and shows them at any position of the log.

Changes are applied once, in order, and remove nothing. Each row records at which entry it was added
and deleted, so any earlier position can still be read.
"""

import contextlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.changes import SOURCE_BYTES, Op
from caraway_core.errors import OutOfMemoryQueryError
from caraway_core.ids import TableName
from caraway_core.tables import LookupColumns, StoredTable
from caraway_engine.rows import base_keys, choosing, entries, keyed, uniqueness
from caraway_engine.rows.entries import EntryChanges
from caraway_engine.rows.keyed import Key, KeyIndex, Sought
from caraway_engine.rows.pieces import Hold, RowRange, VisibleRows
from caraway_engine.rows.units import RowUnit

_MANY_SMALL = 32
_KEY_BYTES = 200
"""The approximate size of a logged row in the dictionaries."""


@dataclass(slots=True)
class _Work:
    """The effect of an entry: its rows to add to the log, and the rows that it deletes."""

    ordinal: int
    first: int
    taken: Sequence[int] = ()
    dead_in_base: list[int] = field(default_factory=list)
    dead_in_log: list[int] = field(default_factory=list)


class Merged:
    """A partition: its base, with the first `applied` entries of the log.

    Calls must not be concurrent. Rows returned by `seen` never change.
    """

    def __init__(
        self,
        table: TableName,
        spec: StoredTable,
        base: Sequence[tuple[pa.RecordBatch, object]],
        hold: Hold,
        sources: Sequence[RowUnit] = (),
    ) -> None:
        """Take the rows of the base, and index them. `sources` are the units that have them.

        Raises:
            QueryError: a key is duplicated or NULL, or the indexes do not fit in memory.
        """
        self.applied = 0
        self.used_s = 0.0
        self._table = table
        self._hold = hold
        self._schema = spec.schema
        self._keys = spec.keys
        self._primary = spec.keys.primary if spec.keys else ()
        self._base: list[RowRange] = []
        count = 0
        for batch, holder in base:
            self._base.append(RowRange(batch, count, [(0, batch.num_rows)], holder))
            count += batch.num_rows
        for piece, source in zip(self._base, sources, strict=False):
            piece.source = source
        self._base_starts = [piece.first for piece in self._base]
        self._dead_base = bytearray(count)
        self._index: KeyIndex | None = None
        self._lookups: dict[tuple[str, ...], KeyIndex] = {}
        self._held: list[object] = []
        self._build(table)
        self._log: list[RowRange] = []
        self._dead_log = bytearray()
        self._latest: dict[Key, int] = {}
        """The last row of the log for each key, even if it was deleted."""
        self._before: dict[int, int] = {}
        self._offsets: dict[Key, bytes] = {}
        self._seen_in_base: dict[Key, int] = {}
        self._floors: dict[bytes, bytes] = {}
        self._truncations: list[tuple[int, int]] = []
        self._logged = {each.columns: dict[Key, list[int]]() for each in self._indexes()}

    def room(self, entry: EntryChanges, partition: str | None) -> object:
        """Reserve memory for the next entry in this partition.

        Raises:
            OutOfMemoryQueryError: it does not fit.
        """
        rows = entry.changes_of(partition)
        return self._hold(_size(entry, len(rows))) if rows else None

    def apply(self, entry: EntryChanges, partition: str | None, room: object = None) -> None:
        """Apply the next entry to this partition, or all of the entry for None.

        Raises:
            OutOfMemoryQueryError: it does not fit; nothing has changed.
            DuplicateError: it violates a unique index; this object must not be used again.
        """
        rows = entry.changes_of(partition)
        if rows:
            holder = room if room is not None else self.room(entry, partition)
            work = _Work(self.applied + 1, len(self._dead_log))
            self._change(entry, rows, work)
            self._check_unique(entry, work)
            self._take(entry, work, holder)
        self.applied += 1

    def seen(self, ordinal: int) -> Iterator[VisibleRows]:
        """Yield the rows that are visible at a position.

        Raises:
            OutOfMemoryQueryError: a copy without the deleted rows does not fit.
        """
        for piece, since in self._pieces(ordinal):
            yield from piece.seen(ordinal, since, self._hold)

    def units(self, ordinal: int) -> Iterator[RowUnit]:
        """Yield the batches that have rows which are visible at a position."""
        for piece, since in self._pieces(ordinal):
            yield from piece.units(ordinal, since)

    def count(self, ordinal: int) -> int:
        """Return the number of rows that are visible at a position."""
        return sum(piece.count(ordinal, since) for piece, since in self._pieces(ordinal))

    def rows_of(
        self, columns: tuple[str, ...], sought: Sought, ordinal: int
    ) -> list[pa.RecordBatch]:
        """Return the visible rows with a key at a position. The columns must have an index."""
        key = sought.key
        is_primary = columns == self._primary
        index = self._index if is_primary else self._lookups[columns]
        since = self._since(ordinal)
        hits: list[int] = []
        if since is None and index is not None:
            hits = index.at(sought.hash)
            there = base_keys.keys_at(self._base, columns, hits)
            hits = [number for number in hits if there[number] == key]
        late = self._versions(key) if is_primary else self._logged[columns].get(key, [])
        shown = [
            (pieces, number)
            for pieces, numbers in ((self._base, hits), (self._log, late))
            for number in numbers
            if (pieces is self._base or number >= (since or 0))
            and base_keys.holding(pieces, number).is_seen(number, ordinal)
        ]
        return [base_keys.row(pieces, number) for pieces, number in shown]

    def _build(self, table: TableName) -> None:
        base_keys.check_types(table, self._schema, self._keys)
        losers: Sequence[int] = ()
        if self._keys is not None and self._primary:
            base_keys.check_not_null(table, self._primary, self._base)
            index = self._indexed(self._primary)
            losers = base_keys.losers(table, self._keys, index, self._base)
            for number in losers:
                self._dead_base[number] = 1
                base_keys.holding(self._base, number).kill(number, 0)
            self._index = index.without(losers) if losers else index
            self._held.append(self._hold(index.nbytes))
        for each in self._indexes():
            index = self._indexed(each.columns)
            index = index.without(losers) if losers else index
            if each.is_unique:
                base_keys.check_unique(table, each.columns, index, self._base)
            self._lookups[each.columns] = index
            self._held.append(self._hold(index.nbytes))

    def _indexes(self) -> Sequence[LookupColumns]:
        return self._keys.indexes if self._keys else ()

    def _indexed(self, columns: Sequence[str]) -> KeyIndex:
        return KeyIndex.over([p.batch.column(name) for name in columns] for p in self._base)

    def _base_numbers(self, entry: EntryChanges, rows: Sequence[int]) -> Sequence[int]:
        """Return the base row with the key of each change, or -1."""
        if self._index is None or entry.hashes is None or not len(self._index):
            return [-1] * len(rows)
        hashes = entry.hashes
        if len(rows) < len(hashes):
            hashes = hashes.take(pa.array(rows, pa.int64()))
        found = self._index.first(hashes)
        there = base_keys.keys_at(self._base, self._primary, sorted({n for n in found if n >= 0}))
        for place, number in enumerate(found):
            if number >= 0 and there[number] != entry.keys[rows[place]]:
                # Two keys have the same hash.
                others = self._index.at(hashes[place].as_py())
                keys = base_keys.keys_at(self._base, self._primary, others)
                key = entry.keys[rows[place]]
                found[place] = next((each for each in others if keys[each] == key), -1)
        return found

    def _change(self, entry: EntryChanges, rows: Sequence[int], work: _Work) -> None:
        """Compute the effect of an entry. One long function, as it runs for each change."""
        if entry.only_inserts:
            work.taken = rows
            self._dead_log.extend(bytes(len(rows)))
            return
        ops, keys, offsets = entry.ops, entry.keys, entry.offsets
        work.taken = taken = list[int]()
        bases = self._base_numbers(entry, rows)
        dead_base, dead_log = self._dead_base, self._dead_log
        latest, known_offsets, floors = self._latest, self._offsets, self._floors
        insert, truncate, keep, delete = Op.INSERT, Op.TRUNCATE, Op.KEEP, Op.DELETE
        emptied = Op.EMPTIED
        for row, base in zip(rows, bases, strict=True):
            op = ops[row]
            offset = offsets[row] if offsets is not None else None
            if op == truncate:
                self._truncate(offset, work)
                continue
            if op == emptied:
                if offset is not None:
                    source = offset[:SOURCE_BYTES]
                    floors[source] = max(offset, floors.get(source, b""))
                continue
            if op == insert or not self._primary:
                taken.append(row)
                dead_log.append(0)
                continue
            key = keys[row]
            if known_offsets or floors or offset is not None:
                known = known_offsets.get(key)
                if offset is not None:
                    source = offset[:SOURCE_BYTES]
                    is_late = known is not None and offset < known and known.startswith(source)
                    if is_late or offset < floors.get(source, b""):
                        continue
            else:
                known = None
            before = latest.get(key, -1)
            is_logged = before >= 0 and not dead_log[before]
            is_in_base = base >= 0 and not dead_base[base]
            if op == keep and (is_logged or is_in_base):
                continue
            if offset is not None:
                known_offsets[key] = offset
            elif known is not None:
                del known_offsets[key]
            if op > truncate:
                if is_in_base:
                    self._seen_in_base[key] = base
                continue
            if is_in_base:
                dead_base[base] = 1
                work.dead_in_base.append(base)
            if is_logged:
                dead_log[before] = 1
                work.dead_in_log.append(before)
            if op != delete:
                number = work.first + len(taken)
                if before >= 0:
                    self._before[number] = before
                latest[key] = number
                taken.append(row)
                dead_log.append(0)

    def _check_unique(self, entry: EntryChanges, work: _Work) -> None:
        """Check that the rows that an entry leaves are unique in each unique index."""
        unique = [each.columns for each in self._indexes() if each.is_unique]
        if not unique or not work.taken:
            return
        alive = [row for at, row in enumerate(work.taken, work.first) if not self._dead_log[at]]
        rows = choosing.taken(entry.rows, pa.array(alive, pa.int64()))
        for columns in unique:
            uniqueness.check(
                self._table,
                columns,
                rows,
                self._base,
                self._lookups[columns],
                self._dead_base,
                self._logged[columns],
                self._dead_log,
            )

    def _truncate(self, offset: bytes | None, work: _Work) -> None:
        """Delete all rows, except those with a later change from the same source."""
        in_log: set[int] = set()
        in_base: set[int] = set()
        if offset is not None:
            source = offset[:SOURCE_BYTES]
            if offset < self._floors.get(source, b""):
                return
            self._floors[source] = offset
            for key, known in self._offsets.items():
                if known > offset and known.startswith(source):
                    in_log.add(self._latest.get(key, -1))
                    in_base.add(self._seen_in_base.get(key, -1))
            in_log = {number for number in in_log if number >= 0 and not self._dead_log[number]}
            in_base = {number for number in in_base if number >= 0 and not self._dead_base[number]}
        if not in_log and not in_base:
            self._truncations.append((work.ordinal, len(self._dead_log)))
            self._dead_log[:] = b"\1" * len(self._dead_log)
            self._dead_base[:] = b"\1" * len(self._dead_base)
            return
        for dead, stay, dying in (
            (self._dead_base, in_base, work.dead_in_base),
            (self._dead_log, in_log, work.dead_in_log),
        ):
            ending = [n for n, is_dead in enumerate(dead) if not is_dead and n not in stay]
            for number in ending:
                dead[number] = 1
            dying += ending

    def _take(self, entry: EntryChanges, work: _Work, holder: object) -> None:
        """Add the rows of an entry to the log, and record the rows that it deletes."""
        if work.taken:
            batches = entry.batches
            if len(work.taken) < len(entry.ops):
                batches = [choosing.taken(entry.rows, pa.array(work.taken, pa.int64()))]
            first = work.first
            for batch in batches:
                self._add(batch, first, work.ordinal, holder)
                first += batch.num_rows
        _bury(self._base, work.dead_in_base, work.ordinal)
        _bury(self._log, work.dead_in_log, work.ordinal)
        self._gather()

    def _add(self, batch: pa.RecordBatch, first: int, ordinal: int, holder: object) -> None:
        rows = pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)
        self._log.append(RowRange(rows, first, [(ordinal, rows.num_rows)], holder))
        for columns, found in self._logged.items():
            held = [rows.column(name) for name in columns]
            for number, key in enumerate(keyed.keys(held), first):
                found.setdefault(key, []).append(number)

    def _gather(self) -> None:
        """Join small pieces of the log, because every piece adds cost to a scan."""
        small = 0
        while small < len(self._log) and self._log[-1 - small].batch.num_rows < entries.LEAST_ROWS:
            small += 1
        if small >= _MANY_SMALL:
            first, *others = self._log[-small:]
            # Without memory for a copy they stay as they are.
            with contextlib.suppress(OutOfMemoryQueryError):
                self._log[-small:] = [first.joined(others, self._hold)]

    def _versions(self, key: Key) -> list[int]:
        """Return all log rows of a key."""
        found: list[int] = []
        number = self._latest.get(key, -1)
        while number >= 0:
            found.append(number)
            number = self._before.get(number, -1)
        return found

    def _since(self, ordinal: int) -> int | None:
        """Return the first row of the log after the last TRUNCATE, or None if there was none."""
        at = bisect_right(self._truncations, ordinal, key=lambda each: each[0])
        return self._truncations[at - 1][1] if at else None

    def _pieces(self, ordinal: int) -> Iterator[tuple[RowRange, int]]:
        since = self._since(ordinal)
        if since is None:
            yield from ((piece, 0) for piece in self._base)
        for piece in self._log:
            if piece.end > (since or 0):
                yield piece, since or 0


def _bury(pieces: Sequence[RowRange], numbers: Sequence[int], ordinal: int) -> None:
    starts = [piece.first for piece in pieces]
    for number in numbers:
        pieces[bisect_right(starts, number) - 1].kill(number, ordinal)


def _size(entry: EntryChanges, rows: int) -> int:
    return entry.size_bytes * rows // max(1, len(entry.ops)) + _KEY_BYTES * rows
