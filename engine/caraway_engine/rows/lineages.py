"""The partitions of a version in memory, each merged with its log up to some entry."""

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter

from caraway_core.changes import Log
from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.partitions.keys import BucketKey, ByColumn
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import StoredTable
from caraway_engine.rows import entries, held, units
from caraway_engine.rows.held import Chunk, Chunks
from caraway_engine.rows.merging import Merged
from caraway_engine.rows.uniqueness import DuplicateError

_ids = attrgetter("chunk.checksum", "chunk.key", "chunk.index")
Group = tuple[str | None, tuple[str, ...]]
"""The unit of merging: one partition, or all pieces that are not partitioned by the key."""
SLICE_ROWS = 16 * 1024
"""The number of rows that are indexed or applied before other threads get a turn."""


class Lineage:
    """An append-only log, and the partitions merged with it. Calls must not be concurrent."""

    def __init__(
        self, table: TableName, spec: StoredTable, pieces: Mapping[str, Sequence[ChunkInfo]]
    ) -> None:
        self._table = table
        self._spec = spec
        self._pieces = pieces
        self._entries: Log = ()
        self._ids: list[object] = []
        self._merged: dict[Group, Merged] = {}
        self._is_parted = _is_parted(spec)
        self._is_in_buckets = entries.buckets(spec) is not None

    def reach(self, log: Log) -> bool:
        """Return whether a log equals or extends this one; the extension is then adopted.

        Entries that were not applied may be replaced, for example after refused changes.
        """
        if log is self._entries:
            return True
        ids: list[object] = list(map(_ids, log))
        both = min(len(ids), len(self._ids))
        is_same = ids[:both] == self._ids[:both]
        if not is_same:
            applied = max((each.applied for each in self._merged.values()), default=0)
            if ids[:applied] != self._ids[:applied]:
                return False
        if not is_same or len(ids) > len(self._ids):
            self._entries, self._ids = log, ids
        return True

    def is_of(self, log: Log) -> bool:
        """Return whether this log is a prefix of the known one."""
        count = len(log)
        if log is self._entries or not count:
            return True
        return count <= len(self._ids) and self._ids[count - 1] == _ids(log[-1])

    def bring(
        self,
        names: tuple[str, ...],
        count: int,
        chunks: Chunks,
        now_s: float,
        *,
        is_scan: bool = True,
    ) -> tuple[list[Merged], tuple[ChunkInfo, ...]] | None:
        """Return the named partitions with `count` entries applied, or the missing chunks.

        None means that a part of the work is done: call again after other threads had a turn. A
        lookup does not count as a read.

        Raises:
            QueryError: they cannot be merged, or do not fit in memory.
        """
        groups = self._groups(names, count)
        chunk_infos = self._wanted(groups, count)
        found = {info: chunk for info in chunk_infos if (chunk := chunks.held(info)) is not None}
        away = tuple(info for info in chunk_infos if info not in found)
        if away:
            return [], away
        merged: list[Merged] = []
        rows = 0
        for group in groups:
            if rows >= SLICE_ROWS:
                _note(merged, now_s)
                return None
            rows += 0 if group in self._merged else self._rows(group)
            merged.append(self._of(group, found, chunks))
        for ordinal in range(min((each.applied for each in merged), default=count), count):
            if rows >= SLICE_ROWS:
                _note(merged, now_s)
                return None
            self._apply(ordinal, groups, merged, found)
            rows += self._entries[ordinal].chunk.row_count
        if is_scan:
            for each in merged:
                each.used_s = now_s
        return merged, ()

    def at_hand(self, names: tuple[str, ...], count: int, now_s: float) -> list[Merged] | None:
        """Like `bring`, but return None if anything has to be done first."""
        merged = [self._merged.get(group) for group in self._groups(names, count)]
        found = [each for each in merged if each is not None and each.applied >= count]
        if len(found) < len(merged):
            return None
        for each in found:
            each.used_s = now_s
        return found

    @property
    def is_held(self) -> bool:
        """True if any partitions are in memory."""
        return bool(self._merged)

    def let_go(self, before_s: float, standing: Container[str] = ()) -> None:
        """Release partitions not read since a time, except the last read and `standing`."""
        last_s = max((each.used_s for each in self._merged.values()), default=0.0)
        least_s = min(before_s, last_s)
        self._merged = {
            group: each
            for group, each in self._merged.items()
            if each.used_s >= least_s or all(name in standing for name in group[1])
        }

    def _groups(self, names: tuple[str, ...], count: int) -> list[Group]:
        if self._is_parted and (self._is_in_buckets or not count):
            return [(name, (name,)) for name in names]
        if count and names != tuple(self._pieces):
            raise ExecutionError(
                f"a task has a share of dataset '{self._table}', which has changes but is not "
                "divided into buckets; this is a bug in the planner: please report it"
            )
        return [(None, names)]

    def _wanted(self, groups: Iterable[Group], count: int) -> list[ChunkInfo]:
        chunk_infos: list[ChunkInfo] = []
        first = count
        for group in groups:
            made = self._merged.get(group)
            if made is None:
                chunk_infos += (info for name in group[1] for info in self._infos(name))
            first = min(first, made.applied if made else 0)
        return [*chunk_infos, *(entry.chunk for entry in self._entries[first:count])]

    def _of(self, group: Group, found: Mapping[ChunkInfo, Chunk], chunks: Chunks) -> Merged:
        made = self._merged.get(group)
        if made is None:
            infos = [info for name in group[1] for info in self._infos(name)]
            sources = [
                unit
                for info in infos
                for unit in units.of_chunk(self._table, self._spec.schema, found[info])
            ]
            base = [(unit.batch, unit.holder) for unit in sources]
            hold = partial(chunks.count_bytes, self._table)
            made = Merged(self._table, self._spec, base, hold, sources)
            self._merged[group] = made
        return made

    def _apply(
        self,
        ordinal: int,
        groups: Sequence[Group],
        merged: Sequence[Merged],
        found: Mapping[ChunkInfo, Chunk],
    ) -> None:
        behind = [
            (group, each)
            for group, each in zip(groups, merged, strict=True)
            if each.applied == ordinal
        ]
        if not behind:
            return
        batches = found[self._entries[ordinal].chunk].batches
        entry = entries.read(self._table, self._spec, batches)
        # Reserve memory for all partitions first. If it does not fit, nothing has changed.
        rooms = [each.room(entry, partition) for (partition, _), each in behind]
        try:
            for ((partition, _), each), room in zip(behind, rooms, strict=True):
                each.apply(entry, partition, room)
        except DuplicateError:
            # These partitions have applied the refused entry. Later reads build them again.
            for group, _ in behind:
                del self._merged[group]
            raise

    def _rows(self, group: Group) -> int:
        return sum(info.row_count for name in group[1] for info in self._infos(name))

    def _infos(self, name: str) -> Sequence[ChunkInfo]:
        if name not in self._pieces:
            raise held.no_such_chunk(self._table)
        return self._pieces[name]


def _note(merged: Sequence[Merged], now_s: float) -> None:
    """Mark partially built partitions as used, so that they are not released."""
    for each in merged:
        each.used_s = now_s


def _is_parted(spec: StoredTable) -> bool:
    """Return whether all rows with a key are in one partition, so that each can be merged alone."""
    primary = spec.keys.primary if spec.keys else ()
    if not spec.cut.terms:
        return False
    if not primary:
        return entries.buckets(spec) is not None
    return all(
        isinstance(term, BucketKey | ByColumn) and term.column in primary for term in spec.cut.terms
    )
