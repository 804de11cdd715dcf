"""Segments of indexes over rows in memory: built when a search first needs them, then kept.

A segment belongs to the batch of a chunk, so versions that share a chunk share its segments, and
they go with it.
"""

import logging
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from caraway_core.errors import OutOfMemoryQueryError
from caraway_core.ids import TableName
from caraway_engine.rows.held import Chunks
from caraway_engine.rows.units import RowUnit

logger = logging.getLogger(__name__)
_LONG_S = 1.0


class Segment(Protocol):
    """What is kept of an index."""

    @property
    def nbytes(self) -> int: ...


SegmentT = TypeVar("SegmentT", bound=Segment)


@dataclass(frozen=True, slots=True)
class Wanted(Generic[SegmentT]):
    """A segment over a unit: `name` tells segments of one unit apart."""

    name: Hashable
    build: Callable[[], SegmentT]


class KeptSegments:
    """The segments of all datasets of this process. Thread-safe; each is built by one thread."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._kept: WeakKeyDictionary[object, dict[Hashable, tuple[object, object]]] = (
            WeakKeyDictionary()
        )
        self._building = Lock()

    def of(self, table: TableName, unit: RowUnit, wanted: Wanted[SegmentT]) -> SegmentT:
        """Return a segment over all rows of a unit, built if it is not kept.

        Without room in memory it is built for this search alone.
        """
        found = self._find(unit, wanted)
        if found is not None:
            return found
        with self._building:
            found = self._find(unit, wanted)
            if found is not None:
                return found
            started_s = time.monotonic()
            made = wanted.build()
            try:
                hold = self._chunks.take(table, made.nbytes)
            except OutOfMemoryQueryError:
                logger.warning(
                    "no room for an index in memory; each search builds it",
                    extra={"dataset": table, "size_bytes": made.nbytes},
                )
                return made
            kept = self._kept.setdefault(unit.key, {})
            # A copy for each addition: other threads read it without the lock.
            self._kept[unit.key] = {**kept, (unit.place, wanted.name): (made, hold)}
            if (took_s := time.monotonic() - started_s) > _LONG_S:
                extra = {"dataset": table, "rows": unit.batch.num_rows, "seconds": took_s}
                logger.info("index of a chunk was built", extra=extra)
            return made

    def _find(self, unit: RowUnit, wanted: Wanted[SegmentT]) -> SegmentT | None:
        entry = self._kept.get(unit.key, {}).get((unit.place, wanted.name))
        # Names tell kinds of segments apart, see `Wanted`.
        return None if entry is None else entry[0]  # type: ignore[return-value]
