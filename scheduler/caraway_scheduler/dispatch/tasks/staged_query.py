"""The values that all tasks of a query in stages share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from caraway_core.changes import Logs
from caraway_core.ids import CatalogVersion, QueryId, TableName
from caraway_core.protocols.fleet import Share
from caraway_core.protocols.storing import StoreOrder
from caraway_core.statements import GivenRows


@dataclass(frozen=True, slots=True)
class StagedQuery:
    """The values that all tasks of a query share.

    `shares` returns the shares of a divided table by slot. With `store`, the tasks of the last
    stage store their own rows.
    """

    query_id: QueryId
    catalog: str
    catalog_version: CatalogVersion
    shares: Callable[[TableName], Sequence[Share]] = field(repr=False)
    store: StoreOrder | None = None
    in_background: bool = False
    logs: Logs = field(default_factory=dict, repr=False)
    found: tuple[GivenRows, ...] = field(default=(), repr=False)
    trace_id: str = ""
    is_profiled: bool = False

    def found_in(self, plan: bytes) -> tuple[GivenRows, ...]:
        """Return the rows of searches that a fragment may read."""
        return tuple(each for each in self.found if each.name.rpartition(".")[0].encode() in plan)
