"""Versions of accelerated datasets: as much of each as statements and tasks have asked for.

A version is a table without rows until somebody reads it. Then its chunks have to be in memory,
which the engine cannot see to: it says which are missing, is given them, and is asked again.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from datafusion.catalog import Table

from caraway_core.errors import CarawayError, ExecutionError
from caraway_core.ids import TableName
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import StoredTable
from caraway_engine.shares import ListedFile

_BATCH_ROWS = 64 * 1024
"""An operator works on one batch at a time, so a batch of a whole table would occupy one core."""
_UNREAD_S = 60.0
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Chunk:
    """A chunk in memory. Whoever holds this holds its rows."""

    batches: tuple[pa.RecordBatch, ...]


class Chunks(Protocol):
    """The chunks that are in memory."""

    def held(self, chunk: ChunkInfo) -> Chunk | None: ...


class NoChunks:
    """Of an engine that only plans."""

    def held(self, chunk: ChunkInfo) -> Chunk | None:
        return None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Chunks of a dataset that are not in memory."""

    table: TableName
    spec: StoredTable
    chunks: tuple[ChunkInfo, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """How much was brought into memory."""

    rows: int
    size_bytes: int


class ChunksAwayError(CarawayError):
    """A statement reads chunks that are not in memory; bring them, and start it again."""

    def __init__(self, wanted: Sequence[Wanted]) -> None:
        names = ", ".join(f"'{each.table}'" for each in wanted)
        super().__init__(f"rows of dataset {names} are not in memory; start the statement again")
        self.wanted = tuple(wanted)


def pieces(spec: StoredTable) -> tuple[ListedFile, ...]:
    """List the chunks of a version as what can be dealt out."""
    return tuple(
        ListedFile(name, each.size_bytes, is_splittable=False, is_kept=True)
        for name, each in _named(spec.chunks).items()
    )


@dataclass(slots=True)
class _Share:
    table: Table
    chunks: tuple[Chunk, ...]
    used_s: float = 0.0


class Version:
    """One version of a dataset: its table, and tables of shares of it.

    Sessions that see the same version have the same object, so its rows are there once and go
    with the last of them.
    """

    def __init__(
        self, table: TableName, spec: StoredTable, partitions: int, clock: Clock = time.monotonic
    ) -> None:
        self.spec = spec
        self._name = table
        self._partitions = partitions
        self._clock = clock
        self._whole: tuple[Chunk, ...] | None = None
        self._shares: dict[tuple[str, ...], _Share] = {}
        self._chunks = _named(spec.chunks)
        self._lock = Lock()
        self.table = _table([[]] * partitions, spec.schema)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its chunks, in the order of the rows."""
        return tuple(self._chunks)

    @property
    def is_held(self) -> bool:
        """Whether any of its rows are in memory for it."""
        return bool(self._whole) or any(each.chunks for each in self._shares.copy().values())

    def sizes(self, names: Iterable[str]) -> Loaded:
        chunks = [self._chunk(name) for name in names]
        rows = sum(each.row_count for each in chunks)
        return Loaded(rows, sum(each.size_bytes for each in chunks))

    def load(self, names: tuple[str, ...], chunks: Chunks) -> None:
        """Have some of the chunks in memory, as a task with a share of them would.

        Raises:
            ChunksAwayError: they are not there.
            ExecutionError: the version has no such chunk.
        """
        check_present([self.share(names, chunks)])

    def fill(self, chunks: Chunks) -> Wanted | None:
        """Give the table its rows, if it has them not yet; returns what is missing for that.

        Plans that were made before read them, too.
        """
        if self._whole is not None:
            return None
        with self._lock:
            if self._whole is None:
                found, away = self._found(self.spec.chunks, chunks)
                if away:
                    return Wanted(self._name, self.spec, away)
                _append(self.table, self._batches(found), self.spec.schema)
                self._whole = found
        return None

    def share(self, names: tuple[str, ...], chunks: Chunks) -> Table | Wanted:
        """Return a table of some of the chunks, or what is missing for it.

        Raises:
            ExecutionError: the version has no such chunk.
        """
        if names == tuple(self._chunks):
            return self.fill(chunks) or self.table
        with self._lock:
            made = self._shares.get(names)
            if made is None:
                found, away = self._found([self._chunk(name) for name in names], chunks)
                if away:
                    return Wanted(self._name, self.spec, away)
                parts = _dealt(self._batches(found), self._partitions)
                made = _Share(_table(parts, self.spec.schema), found)
                self._shares[names] = made
            made.used_s = self._clock()
            return made.table

    def let_go(self) -> None:
        """Let go of shares that were not read of late, but for the one that was read last.

        When executors come or go, each has another share from then on.
        """
        before_s = self._clock() - _UNREAD_S
        if not self._lock.acquire(blocking=False):
            return
        try:
            last = max((each.used_s for each in self._shares.values()), default=0.0)
            least = min(before_s, last)
            self._shares = {
                names: each for names, each in self._shares.items() if each.used_s >= least
            }
        finally:
            self._lock.release()

    def pieces(self) -> tuple[ListedFile, ...]:
        return pieces(self.spec)

    def _chunk(self, name: str) -> ChunkInfo:
        if name not in self._chunks:
            raise ExecutionError(
                f"a task has a share of dataset '{self._name}' with chunks that its version does "
                "not have; this is a fault of the planner: please report it"
            )
        return self._chunks[name]

    def _found(
        self, infos: Sequence[ChunkInfo], chunks: Chunks
    ) -> tuple[tuple[Chunk, ...], tuple[ChunkInfo, ...]]:
        looked_up = [(info, chunks.held(info)) for info in infos]
        found = tuple(chunk for _, chunk in looked_up if chunk is not None)
        return found, tuple(info for info, chunk in looked_up if chunk is None)

    def _batches(self, chunks: Sequence[Chunk]) -> list[pa.RecordBatch]:
        """Return the rows under the schema of the version.

        Raises:
            ExecutionError: they are of other types.
        """
        schema = self.spec.schema
        return [
            _under(schema, piece, self._name)
            for chunk in chunks
            for batch in chunk.batches
            for piece in _cut(batch)
        ]


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


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, _BATCH_ROWS):
        yield batch.slice(start, _BATCH_ROWS)


def _under(schema: pa.Schema, batch: pa.RecordBatch, table: TableName) -> pa.RecordBatch:
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    if batch.schema.types != schema.types:
        raise ExecutionError(
            f"dataset '{table}': its stored rows are of other types than its version says; "
            "refresh the dataset"
        )
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _dealt(batches: Sequence[pa.RecordBatch], partitions: int) -> list[list[pa.RecordBatch]]:
    """Deal batches into partitions of about as many rows each, neighbours together."""
    dealt: list[list[pa.RecordBatch]] = [[] for _ in range(partitions)]
    total = sum(batch.num_rows for batch in batches)
    seen = 0
    for batch in batches:
        dealt[seen * partitions // total].append(batch)
        seen += batch.num_rows
    return dealt


def _table(partitions: Sequence[Sequence[pa.RecordBatch]], schema: pa.Schema) -> Table:
    empty = pa.RecordBatch.from_pylist([], schema=schema)
    context = SessionContext()
    context.register_record_batches("rows", [list(each) or [empty] for each in partitions])
    return context.catalog().schema().table("rows")


def _append(table: Table, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> None:
    """Append rows, which are not copied, to the partitions of a table in turn."""
    if not batches:
        return
    # Smaller batches, which it would make by itself, cost scans a tenth of their speed.
    config = SessionConfig().with_target_partitions(1).with_batch_size(_BATCH_ROWS)
    context = SessionContext(config)
    context.catalog().schema().register_table("version", table)
    context.catalog().schema().register_table("chunks", _table([batches], schema))
    context.sql("INSERT INTO version SELECT * FROM chunks").collect()
