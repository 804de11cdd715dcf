"""The stored rows of a version, which all its views share."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock

import pyarrow as pa

from caraway_core.changes import Log
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.partitions import hashing
from caraway_core.partitions.keys import BucketKey
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import StoredTable
from caraway_engine.rows import entries, held, keyed, units
from caraway_engine.rows.held import Chunks
from caraway_engine.rows.keyed import Sought
from caraway_engine.rows.lineages import Lineage
from caraway_engine.rows.merging import Merged
from caraway_engine.rows.units import RowUnit
from caraway_engine.sharing import dealing
from caraway_engine.stored import making
from caraway_engine.stored.wanted import MissingChunks


@dataclass(frozen=True, slots=True)
class VersionRows:
    """Rows of a version, and the objects that must be kept while they are read."""

    batches: Sequence[pa.RecordBatch]
    holders: Sequence[object]


@dataclass(frozen=True, slots=True)
class Seeking:
    """A key to look up in an index, and the pieces that may have it."""

    columns: tuple[str, ...]
    sought: Sought
    names: tuple[str, ...]


class Content:
    """The pieces of a version, and an index of which pieces may have a key.

    To merge a log with the pieces, hold `merging`, and release it between slices of the work.
    """

    def __init__(
        self, table: TableName, spec: StoredTable, partitions: int, clock: SecondsClock
    ) -> None:
        self.table = table
        self.spec = spec
        self.partitions = partitions
        self.clock = clock
        self.merging = FairLock()
        self.standing: frozenset[tuple[str, ...]] = frozenset()
        """Shares that stay in memory even if unread, for when another executor is lost."""
        self.pieces = dealing.by_name(spec)
        self.names = tuple(self.pieces)
        """The names of the pieces, in row order."""
        self.lineage = Lineage(table, spec, self.pieces)
        """The lineage of the log that was read last."""
        self.no_rows = making.no_rows(spec.schema)
        self._is_in_buckets = entries.buckets(spec) is not None
        self._orders: dict[tuple[str, ...], tuple[tuple[str, ...], list[int]]] = {}

    def lineage_of(self, log: Log, before: Lineage | None) -> Lineage:
        """Return the lineage for a log, possibly the one used `before`. Requires `merging`.

        A log that diverges from the known entries gets a new lineage.
        """
        lineages = [self.lineage] if before is None else [self.lineage, before]
        for each in lineages:
            if each.is_of(log):
                return each
        for each in lineages:
            if each.reach(log):
                return each
        self.lineage = Lineage(self.table, self.spec, self.pieces)
        self.lineage.reach(log)
        return self.lineage

    def stand_by(self, names: tuple[str, ...]) -> None:
        """Keep a loaded share in memory, if the dataset has replicas."""
        if self.spec.replicas > 1:
            self.standing |= {names}

    def infos(self, name: str) -> Sequence[ChunkInfo]:
        """Return the chunks of a piece.

        Raises:
            ExecutionError: there is no such piece.
        """
        if name not in self.pieces:
            raise held.no_such_chunk(self.table)
        return self.pieces[name]

    def plain(self, names: Iterable[str], chunks: Chunks) -> VersionRows | MissingChunks:
        """Return rows as they were stored, or the chunks that are missing."""
        plain_units = self.plain_units(names, chunks)
        if isinstance(plain_units, MissingChunks):
            return plain_units
        return VersionRows(
            [unit.batch for unit in plain_units], [unit.holder for unit in plain_units]
        )

    def plain_units(
        self, names: Iterable[str], chunks: Chunks
    ) -> Sequence[RowUnit] | MissingChunks:
        """Return rows as they were stored, batch by batch, or the chunks that are missing."""
        looked_up = [(info, chunks.held(info)) for name in names for info in self.infos(name)]
        if away := tuple(info for info, chunk in looked_up if chunk is None):
            return MissingChunks(self.table, self.spec, away)
        return [
            unit
            for _, chunk in looked_up
            if chunk is not None
            for unit in units.of_chunk(self.table, self.spec.schema, chunk)
        ]

    def seeking(self, columns: tuple[str, ...], values: Sequence[object]) -> Seeking | None:
        """Return what to look up in the index of exactly these columns; None if a value is NULL.

        Raises:
            ExecutionError: there is no index of these columns.
        """
        order, places = self._orders.get(columns) or self._order(columns)
        arrays = [
            pa.array([values[place]], self.spec.schema.field(name).type)
            for place, name in zip(places, order, strict=True)
        ]
        if any(array.null_count for array in arrays):
            return None
        sought = keyed.sought(arrays)
        return Seeking(order, sought, self._holding(order, arrays, sought))

    def found(self, seeking: Seeking, merged: Iterable[Merged], count: int) -> pa.RecordBatch:
        """Return the rows with the key after `count` entries of the log. Requires `merging`."""
        rows = [
            row for each in merged for row in each.rows_of(seeking.columns, seeking.sought, count)
        ]
        if len(rows) == 1:
            return rows[0]
        return pa.concat_batches(rows) if rows else self.no_rows

    def _holding(
        self, columns: tuple[str, ...], values: Sequence[pa.Array], sought: Sought
    ) -> tuple[str, ...]:
        """Return the pieces that may have rows with these values."""
        if not self._is_in_buckets:
            return self.names
        number = 0
        for term in self.spec.cut.terms:
            if not isinstance(term, BucketKey) or term.column not in columns:
                return self.names
            if len(columns) == 1:
                bucket = hashing.bucket_of_hash(sought.hash, term.count)
            else:
                value = values[columns.index(term.column)]
                bucket = hashing.bucket_of(value, term.count)[0].as_py()
            number = number * term.count + bucket
        return self.names[number : number + 1]

    def _order(self, columns: tuple[str, ...]) -> tuple[tuple[str, ...], list[int]]:
        keys = self.spec.keys
        indexed = (keys.primary, *(each.columns for each in keys.indexes)) if keys else ()
        for found in indexed:
            if found and sorted(found) == sorted(columns):
                order = self._orders[columns] = found, [columns.index(name) for name in found]
                return order
        raise ExecutionError(
            f"dataset '{self.table}' has no index of the columns ({', '.join(columns)})"
        )


class FairLock:
    """A lock like `threading.Lock`, but waiting threads get it in the order of their requests."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._is_taken = False
        self._waiting: deque[Lock] = deque()

    def acquire(self, *, blocking: bool = True) -> bool:
        """Wait for the lock; if not `blocking`, return at once whether it was free."""
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return True
            if not blocking:
                return False
            mine = Lock()
            mine.acquire()
            self._waiting.append(mine)
        mine.acquire()
        return True

    def release(self) -> None:
        """Pass the lock to the thread that has waited longest."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_taken = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
