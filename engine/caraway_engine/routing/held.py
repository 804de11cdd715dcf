"""Keeps the planners of running statements until they are forgotten, up to a maximum."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from caraway_core.errors import PlanLostError
from caraway_core.ids import TableName
from caraway_core.protocols.fleet import Share
from caraway_core.tables import TableSpec
from caraway_engine.routing.protocol import PlanId
from caraway_engine.routing.repeated import RepeatedPlanner
from caraway_engine.sessions.distribution import Analysis
from caraway_engine.stages import StageGraph

MOST_HELD = 512
"""The most planners that are kept. More can only exist if some were not forgotten."""


@dataclass(slots=True, eq=False)
class StagedStatement:
    """A statement in stages: its planner, the graph so far, and what it was planned from."""

    planner: RepeatedPlanner
    graph: StageGraph
    analysis: Analysis
    specs: Mapping[TableName, TableSpec]
    shares: Mapping[TableName, tuple[Share, ...]] = field(default_factory=dict)
    """What each slot reads of the tables that are divided."""


class HeldPlanners:
    """Keeps planners by plan id.

    An id is registered before its planner is made. So a statement that is forgotten while it is
    being planned leaves nothing behind.
    """

    def __init__(self, most: int = MOST_HELD) -> None:
        self._most = most
        self._held: OrderedDict[PlanId, StagedStatement | None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def register_plan(self, plan: PlanId) -> None:
        """Register a plan id; the oldest entry is dropped when there are too many."""
        self._held[plan] = None
        if len(self._held) > self._most:
            self._held.popitem(last=False)

    def keep(self, plan: PlanId, under_way: StagedStatement) -> None:
        """Keep a planner, unless its plan id was forgotten in the meantime."""
        if plan in self._held:
            self._held[plan] = under_way

    def planner_of(self, plan: PlanId) -> StagedStatement:
        """Return the planner of a plan id.

        Raises:
            PlanLostError: it is not kept.
        """
        under_way = self._held.get(plan)
        if under_way is None:
            raise PlanLostError("the plan of the statement is lost; run the statement again")
        return under_way

    def forget(self, plan: PlanId) -> None:
        """Drop the planner of a plan id, if there is one."""
        self._held.pop(plan, None)
