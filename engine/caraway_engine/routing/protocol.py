"""The seam between a scheduler and what plans for it, in this process or in another one.

Arguments and answers are values that can be pickled. The one exception is `CatalogSnapshot.system`:
it holds functions, which an adapter between processes has to stand in for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NewType, Protocol

from caraway_core.ids import ExecutorId, TableName
from caraway_core.protocols.dispatch import CatalogSnapshot, Statement, ViewFacts
from caraway_core.protocols.fleet import Pinned
from caraway_engine.routing.decisions import Decision, Described
from caraway_engine.stages import Measured, Policy, StageGraph

PlanId = NewType("PlanId", str)
"""Names the planner of a statement under way. The scheduler chooses it, so it can always forget."""


@dataclass(frozen=True, slots=True)
class Workers:
    """The executors that are ready, the least memory that one of them has, and the policy."""

    executors: tuple[ExecutorId, ...]
    memory_bytes: int
    policy: Policy


@dataclass(frozen=True, slots=True)
class Question:
    """Asks how a statement runs, over the catalog version that the statement names.

    `statement.logs` has the keys of all versions with a log, and no entries: planning does not
    read them. `may_look_up` is false once a lookup has failed.
    """

    plan: PlanId
    statement: Statement
    workers: Workers
    may_look_up: bool = True


@dataclass(frozen=True, slots=True)
class Prepared:
    """A snapshot that is registered: why some of its tables could not be, and what views read."""

    failed: Mapping[TableName, str]
    views: Mapping[TableName, ViewFacts]


class Planning(Protocol):
    """Plans statements. It keeps the catalogs, and the planner of each statement in stages."""

    async def prepare(self, snapshot: CatalogSnapshot) -> Prepared:
        """Register a snapshot. Statements that name its version wait until it is published."""
        ...

    async def publish(self) -> None:
        """Have statements see the snapshot that was prepared last."""
        ...

    async def release(self, pinned: Pinned) -> None:
        """Let go of the snapshots that no statement needs."""
        ...

    async def decide(self, question: Question) -> Decision:
        """Plan a statement as far as possible, and say how it runs.

        Raises:
            CatalogMovedError: the catalog that it names is not here.
            QueryError: it cannot be planned.
        """
        ...

    async def advance(self, plan: PlanId, measured: Mapping[str, Measured]) -> StageGraph:
        """Plan on, with the sizes of the stages that are made.

        Raises:
            PlanLostError: the planner is not held any more.
            NotDistributableError: the statement has to run whole.
        """
        ...

    async def describe(self, plan: PlanId) -> Described:
        """Word the stages as they are planned by now.

        Raises:
            PlanLostError: the planner is not held any more.
        """
        ...

    async def forget(self, plan: PlanId) -> None:
        """Let go of the planner of a statement, also of one that is still at work."""
        ...
