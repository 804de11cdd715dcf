"""A piece of a query while it is planned: a relation, and over which tasks its rows are spread."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from substrait.algebra_pb2 import Rel

from caraway_core.ids import TableName
from caraway_engine.stages.graph import ExchangeRead, Layout
from caraway_engine.stages.relations import origins


@dataclass(frozen=True, slots=True)
class StagePart:
    """`single` means that any one task gives all rows; otherwise the tasks' rows add up to them.

    `keys` are the columns by whose hash the rows are parted: of a part over `partitions`, or over
    `slots` whose shares of tables are buckets of one `group`. `colocated` names the groups whose
    tables were joined as they lie.
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

    @property
    def is_everywhere(self) -> bool:
        return self.layout == "single"

    def wrapped(self, rel: Rel, size_bytes: float | None = None) -> "StagePart":
        """Put a relation with one input on top of this part."""
        return replace(
            self,
            rel=rel,
            size_bytes=self.size_bytes if size_bytes is None else size_bytes,
            keys=moved(self.keys, origins(rel)),
        )


def moved(keys: tuple[int, ...] | None, origin: Sequence[int | None]) -> tuple[int, ...] | None:
    """Follow key columns to where they come out; None if one of them does not."""
    if keys is None or not all(key in origin for key in keys):
        return None
    return tuple(origin.index(key) for key in keys)


def joined(rel: Rel, parts: Sequence[StagePart], size_bytes: float) -> StagePart:
    """Put a relation with several inputs on top of parts of which at most one kind is spread."""
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
