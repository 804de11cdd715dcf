"""Requests to the query service: a statement, its sender, and the bounds of its run."""

from dataclasses import dataclass, field
from typing import Literal

from caraway_core.ids import TableName
from caraway_core.protocols.offers import OfferOrder
from caraway_core.statements import GivenRows
from caraway_scheduler.queries import active
from caraway_serving.access import Principal
from caraway_serving.spans import Span


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """A statement and the principal that sent it. `parameters` maps placeholder names to values."""

    sql: str
    principal: Principal
    span: Span
    parameters: dict[str, object] = field(default_factory=dict)
    protocol: active.Protocol = "http"
    cache_control: Literal["use", "bypass"] = "use"
    user_agent: str = ""
    given: GivenRows | None = None
    may_write: bool = True
    """False refuses writes that the principal may do."""
    readable: frozenset[TableName] | None = None
    """The only tables and views that it may name; None allows all."""
    offer: OfferOrder | None = None
    """Set where executors may serve the rows; see `Statement`."""
    takes_plain: bool = False
    """True if the reader takes strings and bytes in place of views, which saves copies."""
    takes_uncut: bool = False
    """True if the reader, which `takes_plain`, also takes many rows at once."""
