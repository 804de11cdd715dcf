"""The planners of statements under way, each until it is forgotten, and only so many."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from caraway_core.errors import PlanLostError
from caraway_core.ids import TableName
from caraway_core.protocols.fleet import Share
from caraway_core.tables import TableSpec
from caraway_engine.routing.protocol import PlanId
from caraway_engine.sessions.distribution import Analysis
from caraway_engine.stages import StageGraph
from caraway_engine.stages.planner import Planner

MOST_HELD = 512
"""More statements than that are never under way unless some were not forgotten."""


@dataclass(slots=True, eq=False)
class StagedStatement:
    """A statement in stages: its planner, how far that came, and what it was planned from."""

    planner: Planner
    graph: StageGraph
    analysis: Analysis
    specs: Mapping[TableName, TableSpec]
    shares: Mapping[TableName, tuple[Share, ...]] = field(default_factory=dict)
    """What each slot reads of the tables that are divided."""


class HeldPlanners:
    """The planners by their names.

    A name is there from before its planner is made. So a statement that is forgotten while it is
    being planned leaves nothing behind.
    """

    def __init__(self, most: int = MOST_HELD) -> None:
        self._most = most
        self._held: OrderedDict[PlanId, StagedStatement | None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def begin(self, plan: PlanId) -> None:
        """Expect a planner; the oldest one gives way where there are too many."""
        self._held[plan] = None
        if len(self._held) > self._most:
            self._held.popitem(last=False)

    def keep(self, plan: PlanId, under_way: StagedStatement) -> None:
        """Hold a planner, unless it was forgotten meanwhile."""
        if plan in self._held:
            self._held[plan] = under_way

    def of(self, plan: PlanId) -> StagedStatement:
        """Return a planner.

        Raises:
            PlanLostError: it is not held.
        """
        under_way = self._held.get(plan)
        if under_way is None:
            raise PlanLostError("the plan of the statement is gone; run the statement again")
        return under_way

    def forget(self, plan: PlanId) -> None:
        self._held.pop(plan, None)
