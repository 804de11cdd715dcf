"""The protocol between a scheduler and its planner, which may be in another process.

Arguments and results can be pickled. The one exception is `CatalogSnapshot.system`, which holds
functions. An adapter between processes has to replace it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NewType, Protocol

from caraway_core.ids import ExecutorId, TableName
from caraway_core.protocols.fleet import Pinned
from caraway_core.statements import CatalogSnapshot, Statement, ViewFacts
from caraway_engine.routing.decisions import Decision, Described
from caraway_engine.stages import Measured, Policy, StageGraph

PlanId = NewType("PlanId", str)
"""Identifies the planner of a running statement. The scheduler chooses it, so it can forget it."""


@dataclass(frozen=True, slots=True)
class Workers:
    """The ready executors, the smallest memory among them, and the distribution policy."""

    executors: tuple[ExecutorId, ...]
    memory_bytes: int
    policy: Policy


@dataclass(frozen=True, slots=True)
class Question:
    """Asks how a statement should run, over the catalog version that it names.

    `statement.logs` has the keys of all versions with a log but no entries, as planning does not
    read them. `may_look_up` is false once a lookup has failed.
    """

    plan: PlanId
    statement: Statement
    workers: Workers
    may_look_up: bool = True


@dataclass(frozen=True, slots=True)
class Prepared:
    """The result of registering a snapshot: the tables that failed, and what views read."""

    failed: Mapping[TableName, str]
    views: Mapping[TableName, ViewFacts]


class Planning(Protocol):
    """Plans statements. Keeps the catalogs, and the planner of each statement in stages."""

    async def prepare(self, snapshot: CatalogSnapshot) -> Prepared:
        """Register a snapshot. Statements over its version wait until it is published."""
        ...

    async def publish(self) -> None:
        """Make the last prepared snapshot visible to statements."""
        ...

    async def release(self, pinned: Pinned) -> None:
        """Release the snapshots that no statement needs."""
        ...

    async def decide(self, question: Question) -> Decision:
        """Plan a statement as far as possible, and decide how it runs.

        Raises:
            CatalogMovedError: the catalog version that it names is not available.
            QueryError: it cannot be planned.
        """
        ...

    async def advance(self, plan: PlanId, measured: Mapping[str, Measured]) -> StageGraph:
        """Plan further stages, given the measured sizes of completed stages.

        Raises:
            PlanLostError: the planner is no longer kept.
            NotDistributableError: the statement has to run whole.
        """
        ...

    async def describe(self, plan: PlanId) -> Described:
        """Describe the stages that are planned so far.

        Raises:
            PlanLostError: the planner is no longer kept.
        """
        ...

    async def forget(self, plan: PlanId) -> None:
        """Drop the planner of a statement, even if it is still planning."""
        ...
