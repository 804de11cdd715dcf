"""Versions of accelerated datasets: as much of each as statements and tasks have asked for.

A version is a table without rows until somebody reads it. Then its chunks have to be in memory,
which the engine cannot see to: it says which are missing, is given them, and is asked again.

Where there is a log beside it, each position of the log is a table of its own.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from datafusion.catalog import Table

from caraway_core.changes import Log
from caraway_core.errors import CarawayError, ExecutionError
from caraway_core.ids import TableName
from caraway_core.partitions import hashing
from caraway_core.partitions.keys import Bucket
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import StoredTable
from caraway_engine import entries, held, keyed
from caraway_engine.held import BATCH_ROWS, Chunks
from caraway_engine.keyed import Sought
from caraway_engine.lineages import Lineage
from caraway_engine.merging import Merged
from caraway_engine.shares import ListedFile

_UNREAD_S = 60.0
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Chunks of a dataset that are not in memory."""

    table: TableName
    spec: StoredTable
    chunks: tuple[ChunkInfo, ...]


class ChunksAwayError(CarawayError):
    """A statement reads chunks that are not in memory; bring them, and start it again."""

    def __init__(self, wanted: Sequence[Wanted]) -> None:
        names = ", ".join(f"'{each.table}'" for each in wanted)
        super().__init__(f"rows of dataset {names} are not in memory; start the statement again")
        self.wanted = tuple(wanted)


def pieces(spec: StoredTable) -> tuple[ListedFile, ...]:
    """List what of a version can be dealt out: its partitions, or its chunks if it is not cut."""
    return tuple(
        ListedFile(name, sum(each.size_bytes for each in chunks), is_splittable=False, is_kept=True)
        for name, chunks in _pieces(spec).items()
    )


@dataclass(slots=True, eq=False)
class Part:
    """Some pieces of a version at one position, which are in memory."""

    table: Table
    holders: Sequence[object]
    used_s: float = 0.0

    def fill(self, chunks: Chunks) -> None:
        """Do nothing: the rows are there."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a version, and what has to be kept for as long as they are read."""

    batches: Sequence[pa.RecordBatch]
    holders: Sequence[object]


class View:
    """A version at one position of its log: its table, and tables of shares of it.

    Whoever reads one of its tables keeps it for as long.
    """

    def __init__(self, version: "Version", lineage: Lineage, count: int) -> None:
        self.count = count
        self.lineage = lineage
        self._version = version
        self._is_plain = not count and version.spec.keys is None
        self._filled: Sequence[object] | None = None
        self._shares: dict[tuple[str, ...], Part] = {}
        self._lock = Lock()
        self.table = _table([[]] * version.partitions, version.spec.schema)

    @property
    def is_held(self) -> bool:
        """Whether any of its rows are in memory for it."""
        return bool(self._filled) or any(each.holders for each in self._shares.copy().values())

    def fill(self, chunks: Chunks) -> Wanted | None:
        """Give the table its rows, if it has them not yet; returns what is missing for that.

        Plans that were made before read them, too.

        Raises:
            QueryError: the changes cannot be applied, or do not fit.
        """
        if self._filled is not None:
            return None
        with self._lock:
            if self._filled is None:
                rows = self._rows(self._version.names, chunks)
                if isinstance(rows, Wanted):
                    return rows
                _append(self.table, rows.batches, self._version.spec.schema)
                self._filled = rows.holders
        return None

    def share(self, names: tuple[str, ...], chunks: Chunks) -> Table | Wanted:
        """Return a table of some of the pieces, or what is missing for it.

        Raises:
            ExecutionError: the version has no such piece.
            QueryError: the changes cannot be applied, or do not fit.
        """
        if names == self._version.names:
            return self.fill(chunks) or self.table
        made = self.part(names, chunks)
        return made if isinstance(made, Wanted) else made.table

    def part(self, names: tuple[str, ...], chunks: Chunks) -> Part | Wanted:
        """As `share`, with what has to be kept for as long as its table is read."""
        with self._lock:
            made = self._shares.get(names)
            if made is None:
                rows = self._rows(names, chunks)
                if isinstance(rows, Wanted):
                    return rows
                parts = _dealt(rows.batches, self._version.partitions)
                made = Part(_table(parts, self._version.spec.schema), rows.holders)
                self._shares[names] = made
            made.used_s = self._version.clock()
            return made

    def load(self, names: tuple[str, ...], chunks: Chunks) -> int:
        """Have some of the pieces in memory, for a task with a share of them, and count their rows.

        Where changes are merged the batches are left to whoever reads: changes may come faster
        than readers.

        Raises:
            ChunksAwayError: they are not there.
            ExecutionError: the version has no such piece.
            QueryError: they cannot be merged, or do not fit.
        """
        self._version.stand_by(names)
        if self._is_plain:
            check_present([self.share(names, chunks)])
            return sum(each.row_count for name in names for each in self._version.infos(name))
        merged = self._merged(names, chunks)
        if isinstance(merged, Wanted):
            raise ChunksAwayError([merged])
        with self._version.merging:
            return sum(each.count(self.count) for each in merged)

    def rows_of(
        self, columns: Sequence[str], values: Sequence[Any], chunks: Chunks
    ) -> pa.RecordBatch:
        """See `Version.rows_of`."""
        version = self._version
        order, arrays = version.lookup(tuple(columns), values)
        if any(array.null_count for array in arrays):
            return version.no_rows
        sought = keyed.sought(arrays)
        # What is looked up says nothing of what else there is to be kept.
        names = version.holding(order, arrays, sought)
        merged = self._merged(names, chunks, is_scan=False)
        if isinstance(merged, Wanted):
            raise ChunksAwayError([merged])
        with version.merging:
            rows = [row for each in merged for row in each.rows_of(order, sought, self.count)]
        if len(rows) == 1:
            return rows[0]
        return pa.concat_batches(rows) if rows else version.no_rows

    def rows_at_hand(self, columns: Sequence[str], values: Sequence[Any]) -> pa.RecordBatch | None:
        """See `Version.rows_at_hand`."""
        version = self._version
        order, arrays = version.lookup(tuple(columns), values)
        if any(array.null_count for array in arrays):
            return version.no_rows
        sought = keyed.sought(arrays)
        names = version.holding(order, arrays, sought)
        if not version.merging.acquire(blocking=False):
            return None
        try:
            merged = self.lineage.at_hand(names, self.count, version.clock())
            if merged is None:
                return None
            rows = [row for each in merged for row in each.rows_of(order, sought, self.count)]
        finally:
            version.merging.release()
        if len(rows) == 1:
            return rows[0]
        return pa.concat_batches(rows) if rows else version.no_rows

    def let_go(self, before_s: float) -> None:
        """Let go of shares that were not read since, but for the one that was read last."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            last = max((each.used_s for each in self._shares.values()), default=0.0)
            least = min(before_s, last)
            self._shares = {
                names: each
                for names, each in self._shares.items()
                if each.used_s >= least or names in self._version.standing
            }
        finally:
            self._lock.release()

    def _rows(self, names: tuple[str, ...], chunks: Chunks) -> _Rows | Wanted:
        version = self._version
        if self._is_plain:
            return version.plain(names, chunks)
        merged = self._merged(names, chunks)
        if isinstance(merged, Wanted):
            return merged
        with version.merging:
            seen = [one for each in merged for one in each.seen(self.count)]
        return _Rows([each.batch for each in seen], [each.holder for each in seen])

    def _merged(
        self, names: tuple[str, ...], chunks: Chunks, *, is_scan: bool = True
    ) -> Sequence[Merged] | Wanted:
        version = self._version
        now_s = version.clock() if is_scan else None
        with version.merging:
            merged, away = self.lineage.bring(names, self.count, chunks, now_s)
        return Wanted(version.name, version.spec, away) if away else merged


class Version:
    """One version of a dataset, and its views.

    Sessions that see the same version have the same object, so its rows are there once and go
    with the last of them.
    """

    def __init__(
        self, table: TableName, spec: StoredTable, partitions: int, clock: Clock = time.monotonic
    ) -> None:
        self.spec = spec
        self.name = table
        self.partitions = partitions
        self.clock = clock
        self.merging = Lock()
        self.standing: frozenset[tuple[str, ...]] = frozenset()
        """Shares that stay in memory, read or not: another executor may be lost that reads them."""
        self._pieces = _pieces(spec)
        self.names = tuple(self._pieces)
        """The names of its pieces, in the order of the rows."""
        self.no_rows = _no_rows(spec.schema)
        self._is_in_buckets = entries.buckets(spec) is not None
        self._orders: dict[tuple[str, ...], tuple[tuple[str, ...], list[int]]] = {}
        self._lineage = Lineage(table, spec, self._pieces)
        self._base = View(self, self._lineage, 0)
        self._newest: tuple[Log, View] = (), self._base
        self._views: WeakValueDictionary[int, View] = WeakValueDictionary()

    @property
    def table(self) -> Table:
        """Its table without a log."""
        return self._base.table

    @property
    def is_held(self) -> bool:
        """Whether any of its rows are in memory for it."""
        return self._base.is_held or self._newest[1].is_held or self._lineage.is_held

    def at(self, log: Log) -> View:
        """Return the version with those entries of its log."""
        if not log:
            return self._base
        known, view = self._newest
        if log is known:
            return view
        with self.merging:
            if not self._lineage.reach(log):
                self._lineage = Lineage(self.name, self.spec, self._pieces)
                self._lineage.reach(log)
                self._views.clear()
                self._newest = (), self._base
                self._base.lineage = self._lineage
            view = self._views.get(len(log)) or View(self, self._lineage, len(log))
            self._views[len(log)] = view
            if len(log) >= len(self._newest[0]):
                self._newest = log, view
            return view

    def fill(self, chunks: Chunks) -> Wanted | None:
        """As `View.fill`, without a log."""
        return self._base.fill(chunks)

    def share(self, names: tuple[str, ...], chunks: Chunks) -> Table | Wanted:
        """As `View.share`, without a log."""
        return self._base.share(names, chunks)

    def rows_of(
        self, columns: Sequence[str], values: Sequence[Any], chunks: Chunks, log: Log = ()
    ) -> pa.RecordBatch:
        """Return the rows that hold the values in the columns of the key, or of an index.

        Values are those of Python or scalars of Arrow, and of the types of the columns.

        Raises:
            ChunksAwayError: rows of the version are not in memory.
            ExecutionError: there is no index of these columns.
            QueryError: the changes cannot be applied, or do not fit.
        """
        return self.at(log).rows_of(columns, values, chunks)

    def rows_at_hand(
        self, columns: Sequence[str], values: Sequence[Any], log: Log = ()
    ) -> pa.RecordBatch | None:
        """As `rows_of`, if nothing has to be read, merged or waited for; otherwise None."""
        known, view = ((), self._base) if not log else self._newest
        return view.rows_at_hand(columns, values) if known is log or not log else None

    def let_go(self) -> None:
        """Let go of rows that were not read of late, but for those that were read last.

        When executors come or go, each has another share from then on.
        """
        before_s = self.clock() - _UNREAD_S
        for view in {id(each): each for each in (self._base, self._newest[1])}.values():
            view.let_go(before_s)
        if self.merging.acquire(blocking=False):
            try:
                standing = frozenset(name for names in self.standing for name in names)
                self._lineage.let_go(before_s, standing)
            finally:
                self.merging.release()

    def stand_by(self, names: tuple[str, ...]) -> None:
        """Keep a share that was loaded, if several executors are to have each."""
        if self.spec.replicas > 1:
            self.standing |= {names}

    def pieces(self) -> tuple[ListedFile, ...]:
        return pieces(self.spec)

    def infos(self, name: str) -> Sequence[ChunkInfo]:
        if name not in self._pieces:
            raise held.no_such_chunk(self.name)
        return self._pieces[name]

    def plain(self, names: Iterable[str], chunks: Chunks) -> _Rows | Wanted:
        """Return rows as they were stored, or what is missing."""
        looked_up = [(info, chunks.held(info)) for name in names for info in self.infos(name)]
        if away := tuple(info for info, chunk in looked_up if chunk is None):
            return Wanted(self.name, self.spec, away)
        found = [chunk for _, chunk in looked_up if chunk is not None]
        batches = [
            batch for chunk in found for batch in held.cut(self.name, self.spec.schema, chunk)
        ]
        return _Rows(batches, found)

    def holding(
        self, columns: tuple[str, ...], values: Sequence[pa.Array], sought: Sought
    ) -> tuple[str, ...]:
        """Name the pieces that rows with these values can be in."""
        if not self._is_in_buckets:
            return self.names
        number = 0
        for term in self.spec.cut.terms:
            if not isinstance(term, Bucket) or term.column not in columns:
                return self.names
            if len(columns) == 1:
                bucket = hashing.bucket_of_hash(sought.hash, term.count)
            else:
                value = values[columns.index(term.column)]
                bucket = hashing.bucket_of(value, term.count)[0].as_py()
            number = number * term.count + bucket
        return self.names[number : number + 1]

    def lookup(
        self, columns: tuple[str, ...], values: Sequence[Any]
    ) -> tuple[tuple[str, ...], Sequence[pa.Array]]:
        """Find the index of just these columns; returns it with the values in its order."""
        found, places = self._orders.get(columns) or self._order(columns)
        return found, [
            pa.array([values[place]], self.spec.schema.field(name).type)
            for place, name in zip(places, found, strict=True)
        ]

    def _order(self, columns: tuple[str, ...]) -> tuple[tuple[str, ...], list[int]]:
        keys = self.spec.keys
        indexed = (keys.primary, *(each.columns for each in keys.indexes)) if keys else ()
        for found in indexed:
            if found and sorted(found) == sorted(columns):
                order = self._orders[columns] = found, [columns.index(name) for name in found]
                return order
        raise ExecutionError(
            f"dataset '{self.name}' has no index of the columns ({', '.join(columns)})"
        )


def _pieces(spec: StoredTable) -> dict[str, tuple[ChunkInfo, ...]]:
    if not spec.cut.terms:
        return {name: (each,) for name, each in _named(spec.chunks).items()}
    parts: dict[str, list[ChunkInfo]] = {name: [] for name in entries.buckets(spec) or ()}
    for each in spec.chunks:
        parts.setdefault(each.partition, []).append(each)
    return {name: tuple(chunks) for name, chunks in parts.items()}


def _named(chunks: Sequence[ChunkInfo]) -> dict[str, ChunkInfo]:
    """Name chunks by what they hold, in each version alike; equal ones are in a table twice."""
    named: dict[str, ChunkInfo] = {}
    seen: Counter[str] = Counter()
    for each in chunks:
        again = seen[each.sha256]
        named[f"{each.sha256}.{again}" if again else each.sha256] = each
        seen[each.sha256] += 1
    return named


def check_present(found: Iterable[Table | Wanted | None]) -> None:
    """Look whether anything is missing.

    Raises:
        ChunksAwayError: something is.
    """
    if wanted := [each for each in found if isinstance(each, Wanted)]:
        raise ChunksAwayError(wanted)


def _dealt(batches: Sequence[pa.RecordBatch], partitions: int) -> list[list[pa.RecordBatch]]:
    """Deal batches into partitions of about as many rows each, neighbours together."""
    dealt: list[list[pa.RecordBatch]] = [[] for _ in range(partitions)]
    total = sum(batch.num_rows for batch in batches)
    seen = 0
    for batch in batches:
        dealt[seen * partitions // total].append(batch)
        seen += batch.num_rows
    return dealt


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def _table(partitions: Sequence[Sequence[pa.RecordBatch]], schema: pa.Schema) -> Table:
    empty = _no_rows(schema)
    context = SessionContext()
    context.register_record_batches("rows", [list(each) or [empty] for each in partitions])
    return context.catalog().schema().table("rows")


def _append(table: Table, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> None:
    """Append rows, which are not copied, to the partitions of a table in turn."""
    if not batches:
        return
    # Smaller batches, which it would make by itself, cost scans a tenth of their speed.
    config = SessionConfig().with_target_partitions(1).with_batch_size(BATCH_ROWS)
    context = SessionContext(config)
    context.catalog().schema().register_table("version", table)
    context.catalog().schema().register_table("chunks", _table([batches], schema))
    context.sql("INSERT INTO version SELECT * FROM chunks").collect()
