"""Looks every minute at the projects that have reactions, in one of the instances."""

import asyncio
import logging
from collections.abc import Collection, Sequence
from typing import Protocol

import httpx

from caraway_core.errors import CarawayError
from caraway_management.domain import monitoring
from caraway_management.monitoring import leases, reactions
from caraway_management.services import Services
from caraway_management.store.tables import Project, Reaction

logger = logging.getLogger(__name__)
LEASE_S = 2 * monitoring.EVERY_S


class ReactionJudge(Protocol):
    """Judges the reactions of some kinds, project by project."""

    @property
    def lease(self) -> str: ...
    @property
    def kinds(self) -> Collection[str]: ...
    @property
    def at_once(self) -> int:
        """The number of projects that are judged at once."""

    @property
    def timeout_s(self) -> float | None:
        """The limit for each read from a runtime."""

    def begin_round(self, found: list[tuple[Project, list[Reaction]]]) -> None:
        """Begin a round over projects, and put these in the order of their turns."""

    async def judge(
        self, client: httpx.AsyncClient, project: Project, waiting: Sequence[Reaction]
    ) -> None:
        """Judge the reactions of a project, and store the verdicts with their notices.

        Raises:
            CarawayError: the runtime or the database does not respond.
        """


class Looker:
    """Gives the projects with reactions to a judge, if this instance has the lease for it."""

    def __init__(
        self,
        services: Services,
        owner: str,
        judge: ReactionJudge,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._services = services
        self._owner = owner
        self._judge = judge
        self._transport = transport

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                await self.run_once()
            except CarawayError as exc:
                extra = {"work": self._judge.lease, "reason": str(exc)}
                logger.warning("reactions were not judged", extra=extra)
            await asyncio.sleep(monitoring.EVERY_S)

    async def run_once(self) -> None:
        """Have every reaction judged once, unless another instance does it."""
        services, judge = self._services, self._judge
        now = services.now()
        if not await leases.take(services.database, now, judge.lease, self._owner, LEASE_S):
            return
        async with services.database.read() as session:
            found = await reactions.list_waiting(session, judge.kinds)
        judge.begin_round(found)
        slots = asyncio.Semaphore(judge.at_once)
        async with (
            httpx.AsyncClient(
                transport=self._transport, trust_env=False, timeout=judge.timeout_s
            ) as client,
            asyncio.TaskGroup() as group,
        ):
            for project, waiting in found:
                group.create_task(self._look(client, slots, project, waiting))

    async def _look(
        self,
        client: httpx.AsyncClient,
        slots: asyncio.Semaphore,
        project: Project,
        waiting: Sequence[Reaction],
    ) -> None:
        async with slots:
            try:
                await self._judge.judge(client, project, waiting)
            except CarawayError as exc:
                # They are judged the next time.
                extra = {"project": project.id, "work": self._judge.lease, "reason": str(exc)}
                logger.warning("reactions of a project were not judged", extra=extra)
