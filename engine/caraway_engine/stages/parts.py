"""A part of a query during planning: a relation, and how its rows are spread over tasks."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from substrait.algebra_pb2 import Rel

from caraway_core.ids import TableName
from caraway_engine.stages.graph import ExchangeRead, Layout
from caraway_engine.stages.relations import origins


@dataclass(frozen=True, slots=True)
class StagePart:
    """A relation and the layout of its rows.

    With layout `single`, any one task gives all rows. Otherwise the tasks' rows together are all
    rows. `keys` are the columns whose hash determines the task, over `partitions`, or over `slots`
    with buckets of one `group`. `colocated` are the table groups that were joined without moving
    rows. A part that `is_whole_table` has all rows of one table.
    """

    rel: Rel
    size_bytes: float
    layout: Layout = "single"
    count: int = 1
    readings: tuple[ExchangeRead, ...] = ()
    tables: frozenset[TableName] = frozenset()
    keys: tuple[int, ...] | None = None
    path: str = field(default="", compare=False)
    group: str | None = None
    colocated: tuple[str, ...] = ()
    is_whole_table: bool = False

    @property
    def is_everywhere(self) -> bool:
        """True if each task returns all rows."""
        return self.layout == "single"

    def wrapped(self, rel: Rel) -> "StagePart":
        """Put a relation with one input on top of this part."""
        return replace(self, rel=rel, keys=moved(self.keys, origins(rel)))


def moved(keys: tuple[int, ...] | None, origin: Sequence[int | None]) -> tuple[int, ...] | None:
    """Return the output positions of key columns, or None if one is missing."""
    if keys is None or not all(key in origin for key in keys):
        return None
    return tuple(origin.index(key) for key in keys)


def joined(rel: Rel, parts: Sequence[StagePart], size_bytes: float) -> StagePart:
    """Put a relation with several inputs on top of parts; the spread ones share one layout."""
    spread = next((part for part in parts if not part.is_everywhere), parts[0])
    return StagePart(
        rel,
        size_bytes,
        spread.layout,
        spread.count,
        tuple(dict.fromkeys(each for part in parts for each in part.readings)),
        frozenset[TableName]().union(*(part.tables for part in parts)),
        colocated=tuple(dict.fromkeys(each for part in parts for each in part.colocated)),
    )
