"""Segments of indexes over rows in memory: built when they are needed, then kept.

A segment covers batches of chunks, which never change. So versions that have the same chunks share
its segments. New chunks get a segment of their own; many small ones are joined in the background.
"""

import logging
import time
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from caraway_core.errors import CarawayError, NotDistributableError, OutOfMemoryQueryError
from caraway_core.ids import TableName
from caraway_engine.rows.held import Chunks
from caraway_engine.rows.units import RowUnit
from caraway_executor.resources import freeing

logger = logging.getLogger(__name__)
_LONG_S = 1.0
_LARGEST_ROWS = 1 << 18
"""Larger segments are not faster, and joining them takes longer."""
_MOST_SEGMENTS = 4
"""More are joined: each adds some tenths of a millisecond to a search."""
_KEPT_S = 60.0
"""The time for which statements may read versions with the parts of a joined segment."""
_MOST_WANTED = 8


class Segment(Protocol):
    """A part of an index in memory."""

    @property
    def nbytes(self) -> int: ...


SegmentT = TypeVar("SegmentT", bound=Segment)
Place = tuple[int, int, int]
"""The number of the object that owns a batch, its place there, and how often it came before."""


@dataclass(frozen=True, slots=True)
class WantedIndex(Generic[SegmentT]):
    """Segments of an index: `name` identifies it, `build` makes a segment over units.

    It reads `columns`.
    """

    name: Hashable
    build: Callable[[Sequence[RowUnit]], SegmentT]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundSegment(Generic[SegmentT]):
    """A segment, and the places of its units among the requested ones, in its row order."""

    segment: SegmentT
    places: Sequence[int]


@dataclass(slots=True, eq=False)
class _Kept:
    """A segment, the batches that it covers, and its memory for as long as it is kept."""

    segment: Any
    places: tuple[Place, ...]
    owners: Mapping[int, "weakref.ref[object]"]
    row_count: int
    hold: object
    holders: Sequence[object]
    """Of rows that may be in memory for the segment alone: joined ones have been copied."""
    joined_s: float | None = None

    def covers(self, unit: RowUnit) -> bool:
        """Return True if it is of this unit. Ids of objects are reused, so compare the object."""
        owner = self.owners.get(id(unit.key))
        return owner is not None and owner() is unit.key


@dataclass(slots=True, eq=False, weakref_slot=True)
class _Index:
    """The segments of one index of a dataset."""

    segments: tuple[_Kept, ...] = ()
    is_joining: bool = False
    warming: int = 0
    building: Lock = field(default_factory=Lock)


class KeptSegments:
    """The segments of all datasets of this process. Thread-safe."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._indexes: dict[tuple[TableName, Hashable], _Index] = {}
        self._wanted: dict[TableName, dict[Hashable, WantedIndex[Any]]] = {}
        self._lock = Lock()
        self._joining = ThreadPoolExecutor(1, thread_name_prefix="indexes")

    def segments_over(
        self,
        table: TableName,
        units: Sequence[RowUnit],
        wanted: WantedIndex[SegmentT],
        *,
        waits: bool = False,
        builds: bool = True,
    ) -> list[FoundSegment[SegmentT]]:
        """Return segments over all rows of some units; missing segments are built.

        Without room in memory it is built for this search alone.

        Raises:
            NotDistributableError: a segment is missing, and `warm_up` builds it now while the
                caller does not wait, or it must not be built.
        """
        with self._lock:
            index = self._indexes.setdefault((table, wanted.name), _Index())
            known = self._wanted.setdefault(table, {})
            known[wanted.name] = known.pop(wanted.name, wanted)
            while len(known) > _MOST_WANTED:
                del self._indexes[table, gone := next(iter(known))]
                del known[gone]
        placed = dict(zip(_places(units), units, strict=True))
        found, missing = _chosen(index.segments, placed)
        if missing:
            if not builds or (index.warming and not waits):
                raise NotDistributableError("its index is being built")
            with index.building:
                found, missing = _chosen(index.segments, placed)
                for part in _parts(missing):
                    built = self._built(table, index, part, wanted)
                    self._add(index, built)
                    found.append(built)
        if len(found) > _MOST_SEGMENTS and not index.is_joining:
            index.is_joining = True
            with suppress(RuntimeError):  # it was closed
                self._joining.submit(self._join, table, index, placed, wanted)
        numbers = {place: number for number, place in enumerate(placed)}
        return [FoundSegment(e.segment, [numbers[place] for place in e.places]) for e in found]

    def warm_up(
        self, table: TableName, units: Sequence[RowUnit], wanted: WantedIndex[SegmentT]
    ) -> None:
        """Build segments while searches do without them."""
        with self._lock:
            index = self._indexes.setdefault((table, wanted.name), _Index())
            index.warming += 1
        try:
            self.segments_over(table, units, wanted, waits=True)
        finally:
            with self._lock:
                index.warming -= 1

    def known(
        self, table: TableName, units: Sequence[RowUnit], is_meant: Callable[[object], bool]
    ) -> tuple[list[Any], int]:
        """Return the segments that an index has over some units, and the rows of the other units.

        `is_meant` chooses the index by its name. Nothing is built.
        """
        with self._lock:
            names = [name for name in self._wanted.get(table, {}) if is_meant(name)]
            indexes = [self._indexes[table, name] for name in names]
        placed = dict(zip(_places(units), units, strict=True))
        found, missing = _chosen(indexes[-1].segments if indexes else (), placed)
        return [each.segment for each in found], _row_count(missing.values())

    def prepare(self, table: TableName, units: Sequence[RowUnit]) -> None:
        """Build what recent searches of a dataset wanted, for rows that will be read.

        An index of a column that is gone is forgotten. Segments that cannot be built here are
        built by a search: the rows are read all the same.

        Raises:
            CarawayError: the rows cannot be read.
        """
        with self._lock:
            indexes = list(self._wanted.get(table, {}).values())
        names = units[0].batch.schema.names if units else []
        for each in indexes:
            if units and not set(each.columns) <= set(names):
                self._drop(table, each.name)
                continue
            try:
                self.segments_over(table, units, each, waits=True)
            except CarawayError:
                raise
            except Exception:
                self._drop(table, each.name)
                logger.exception("an index was not built", extra={"dataset": table})

    def close(self, *, wait: bool = False) -> None:
        """Join no more segments, but those that are being joined."""
        self._joining.shutdown(wait=wait, cancel_futures=not wait)

    def _drop(self, table: TableName, name: Hashable) -> None:
        with self._lock:
            self._wanted.get(table, {}).pop(name, None)
            self._indexes.pop((table, name), None)

    def _add(self, index: _Index, made: _Kept) -> None:
        if made.hold is None:
            return
        with self._lock:
            now_s = time.monotonic()
            index.segments = (
                *(each for each in index.segments if _is_of_use(each, now_s)),
                made,
            )

    def _built(
        self,
        table: TableName,
        index: _Index,
        placed: Mapping[Place, RowUnit],
        wanted_index: WantedIndex[Any],
    ) -> _Kept:
        started_s = time.monotonic()
        units = list(placed.values())
        segment = wanted_index.build(units)
        row_count = _row_count(units)
        freeing.give_back_after(row_count)
        hold: object = None
        try:
            hold = self._chunks.count_bytes(table, segment.nbytes) or self
        except OutOfMemoryQueryError:
            logger.warning(
                "no room for an index in memory; each search builds it",
                extra={"dataset": table, "size_bytes": segment.nbytes},
            )
        if (took_s := time.monotonic() - started_s) > _LONG_S:
            extra = {"dataset": table, "rows": row_count, "seconds": round(took_s, 3)}
            logger.info("part of an index was built", extra=extra)
        gone = partial(_forget, weakref.ref(index))
        owners = {id(unit.key): weakref.ref(unit.key, gone) for unit in units}
        # The key of a segment must not live for as long as the segment does.
        holders = [unit.holder for unit in units if unit.holder is not unit.key]
        return _Kept(segment, tuple(placed), owners, row_count, hold, holders)

    def _join(
        self,
        table: TableName,
        index: _Index,
        placed: Mapping[Place, RowUnit],
        wanted_index: WantedIndex[Any],
    ) -> None:
        """Replace the smallest segments by one; those that are read meanwhile stay a while."""
        try:
            found, _ = _chosen(index.segments, placed)
            small = _to_join(found)
            if len(small) > 1:
                parts = {place: placed[place] for each in small for place in each.places}
                built = self._built(table, index, parts, wanted_index)
                for each in small if built.hold is not None else ():
                    each.joined_s = time.monotonic()
                self._add(index, built)
        except Exception:
            logger.exception("segments of an index were not joined", extra={"dataset": table})
        finally:
            index.is_joining = False


def _row_count(units: Iterable[RowUnit]) -> int:
    return sum(unit.batch.num_rows for unit in units)


def _places(units: Sequence[RowUnit]) -> list[Place]:
    """Name units; a version may have the same chunk several times."""
    seen: Counter[tuple[int, int]] = Counter()
    places = []
    for unit in units:
        batch = id(unit.key), unit.place
        places.append((*batch, seen[batch]))
        seen[batch] += 1
    return places


def _chosen(
    segments: Sequence[_Kept], placed: Mapping[Place, RowUnit]
) -> tuple[list[_Kept], dict[Place, RowUnit]]:
    """The largest segments over nothing but these units, and the units that they leave."""
    left = dict(placed)
    found = []
    for each in sorted(segments, key=lambda segment: -segment.row_count):
        if all(place in left and each.covers(left[place]) for place in each.places):
            found.append(each)
            for place in each.places:
                del left[place]
    return found, left


def _parts(placed: Mapping[Place, RowUnit]) -> list[dict[Place, RowUnit]]:
    """Cut units into runs of limited size."""
    parts: list[dict[Place, RowUnit]] = []
    room = 0
    for place, unit in placed.items():
        if not parts or unit.batch.num_rows > room:
            parts.append({})
            room = _LARGEST_ROWS
        parts[-1][place] = unit
        room -= unit.batch.num_rows
    return parts


def _to_join(found: Sequence[_Kept]) -> list[_Kept]:
    """The smallest segments, up to the first that is more than twice as large as they together.

    So a row is indexed again only when its segment at least grows by half.
    """
    ordered = sorted(found, key=lambda segment: segment.row_count)
    sums = accumulate(each.row_count for each in ordered)
    small: list[_Kept] = []
    for each, total in zip(ordered, sums, strict=True):
        before = total - each.row_count
        if total > _LARGEST_ROWS or (len(small) > 1 and each.row_count > 2 * before):
            break
        small.append(each)
    return small


def _forget(index: "weakref.ref[_Index]", _owner: object) -> None:
    """Drop the segments over rows that are gone.

    Without a lock, because it is called wherever the rows are freed. A segment that is added at the
    same moment may be dropped with them; then it is built again.
    """
    if (known := index()) is not None:
        now_s = time.monotonic()
        known.segments = tuple(each for each in known.segments if _is_of_use(each, now_s))


def _is_of_use(segment: _Kept, now_s: float) -> bool:
    if any(owner() is None for owner in segment.owners.values()):
        return False
    return segment.joined_s is None or now_s - segment.joined_s < _KEPT_S
