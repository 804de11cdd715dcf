"""Asks the planner how statements run, and releases their plans afterwards."""

import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from caraway_core.concurrency.tasks import Tasks
from caraway_core.ids import ExecutorId
from caraway_core.statements import Statement
from caraway_engine.routing import (
    Decision,
    Described,
    Explained,
    NoneReady,
    PlanId,
    Planning,
    Question,
    Staged,
    Workers,
)
from caraway_engine.stages import Measured, Policy, StageGraph
from caraway_scheduler.dispatch.planning import following
from caraway_scheduler.dispatch.tasks.placing import none_ready
from caraway_scheduler.dispatch.tasks.running import ATTEMPTS, READY_WAIT_S
from caraway_scheduler.membership import Member, Membership

_UNLIMITED = 2**50


@dataclass(frozen=True, slots=True)
class RunDecision:
    """The way in which a statement runs on these executors.

    The planner keeps `plan` while this is in use.
    """

    decision: Decision
    executors: tuple[ExecutorId, ...]
    plan: PlanId


class PlannerClient:
    """Asks the planner of this scheduler, and waits for an executor if none is ready."""

    def __init__(self, planning: Planning, membership: Membership, policy: Policy) -> None:
        self._planning = planning
        self._membership = membership
        self._policy = policy
        self._numbers = itertools.count()
        self._tasks = Tasks()
        self._known: tuple[tuple[Member, ...], Workers] = (), Workers((), _UNLIMITED, policy)

    @asynccontextmanager
    async def asked(
        self, statement: Statement, *, may_look_up: bool = True
    ) -> AsyncIterator[RunDecision]:
        """Ask how a statement runs; leaving the context releases its plan.

        Raises:
            CatalogMovedError: the statement's catalog version is gone.
            OverloadedError: no executor became ready in time.
            QueryError: the statement cannot be planned.
        """
        plan = PlanId(f"plan-{next(self._numbers)}")
        is_held = True  # Until the answer arrives, assume that the planner keeps a plan.
        try:
            answer = await self._answer(plan, statement, may_look_up)
            is_held = isinstance(_way(answer.decision), Staged)
            yield answer
        finally:
            if is_held:
                self._tasks.spawn(self._planning.forget(plan), "plans of ended statements")

    async def advance(self, plan: PlanId, measured: Mapping[str, Measured]) -> StageGraph:
        """Continue the planning of a statement; see `Planning.advance`."""
        return await self._planning.advance(plan, measured)

    async def described(self, plan: PlanId) -> Described:
        """Describe the stages of a statement; see `Planning.describe`."""
        return await self._planning.describe(plan)

    async def aclose(self) -> None:
        """Stop the background tasks that release plans."""
        await self._tasks.aclose()

    async def _answer(self, plan: PlanId, statement: Statement, may_look_up: bool) -> RunDecision:
        for _ in range(ATTEMPTS):
            workers = self._workers()
            question = Question(plan, following.named(statement), workers, may_look_up)
            decision = await self._planning.decide(question)
            if not isinstance(_way(decision), NoneReady):
                return RunDecision(decision, workers.executors, plan)
            if not await self._membership.wait_ready(1, READY_WAIT_S):
                break
        raise none_ready()

    def _workers(self) -> Workers:
        members = self._membership.ready()
        if members is not self._known[0]:
            memory = [each.memory_bytes or _UNLIMITED for each in members]
            executors = tuple(each.executor_id for each in members)
            workers = Workers(executors, min(memory, default=_UNLIMITED), self._policy)
            self._known = members, workers
        return self._known[1]


def _way(decision: Decision) -> Decision | Described:
    return decision.way if isinstance(decision, Explained) else decision
