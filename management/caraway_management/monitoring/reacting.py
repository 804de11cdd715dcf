"""Looks for the events of reactions every minute, in one of the instances."""

import asyncio
import logging
from collections.abc import Sequence

import httpx
from sqlalchemy import select

from caraway_core.errors import CarawayError
from caraway_management.domain import monitoring
from caraway_management.domain import reactions as rules
from caraway_management.domain.reactions import Task
from caraway_management.monitoring import announcing, asking, leases, reactions
from caraway_management.secrets import api_keys
from caraway_management.services import Services
from caraway_management.store.tables import Project, Reaction

logger = logging.getLogger(__name__)
LEASE = "look for events"
_LEASE_S = 2 * monitoring.EVERY_S
_TIMEOUT_S = 10.0
_AT_ONCE = 8
_MOST_BYTES = 8 * 1024 * 1024


class Reactor:
    """Reads the task histories of projects that have reactions, if it has the lease for it.

    A history is read with each key of the project, as a runtime shows a key its own tasks only.
    Refreshes and other work of the runtime itself belong to no key: they are no events.
    """

    def __init__(
        self,
        services: Services,
        owner: str,
        every_s: float = monitoring.EVERY_S,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._services = services
        self._owner = owner
        self._every_s = every_s
        self._transport = transport

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                await self.run_once()
            except CarawayError as exc:
                logger.warning("reactions were not looked after", extra={"reason": str(exc)})
            await asyncio.sleep(self._every_s)

    async def run_once(self) -> None:
        """Look for the events of every reaction once, unless another instance does it."""
        services, now = self._services, self._services.now()
        if not await leases.take(services.database, now, LEASE, self._owner, _LEASE_S):
            return
        async with services.database.read() as session:
            found = await reactions.list_waiting(session, rules.KINDS)
        slots = asyncio.Semaphore(_AT_ONCE)
        async with (
            httpx.AsyncClient(
                transport=self._transport, trust_env=False, timeout=_TIMEOUT_S
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
                tasks = await self._tasks(client, project, waiting)
                if tasks:
                    await self._react(project, waiting, tasks)
            except CarawayError as exc:
                # The events are found the next time.
                extra = {"project": project.id, "reason": str(exc)}
                logger.warning("the history of a project cannot be read", extra=extra)

    async def _tasks(
        self, client: httpx.AsyncClient, project: Project, waiting: Sequence[Reaction]
    ) -> list[Task]:
        """Return the tasks of all keys that may match, in the order in which they ended."""
        cursor = min(int(reaction.cursor or 0) for reaction in waiting)
        slow = [each.spec["thresholdMs"] for each in waiting if "thresholdMs" in each.spec]
        sql = rules.statement(cursor, min(slow, default=None))
        async with self._services.database.read() as session:
            keys = await api_keys.read(session, self._services.sealer, project.id)
        found: dict[str, Task] = {}
        ends: list[int] = []
        for key in keys.values():
            rows = await asking.ask(client, project.endpoint or "", key, sql, _MOST_BYTES)
            tasks = rules.read_tasks(rows)
            found |= {task.id: task for task in tasks}
            if len(tasks) == rules.MOST_READ:
                ends.append(tasks[-1].ended_ns)
        # Where a key has more, tasks of other keys that ended later wait for them.
        last = min(ends, default=None)
        tasks = [task for task in found.values() if last is None or task.ended_ns <= last]
        return sorted(tasks, key=lambda task: task.ended_ns)

    async def _react(
        self, project: Project, waiting: Sequence[Reaction], tasks: Sequence[Task]
    ) -> None:
        """Write notices, and how far events are handled, in one transaction."""
        now = self._services.now()
        before = {reaction.id: reaction.cursor for reaction in waiting}
        async with self._services.database.change() as session:
            query = select(Reaction).where(Reaction.id.in_(list(before)), Reaction.is_enabled)
            for reaction in await session.scalars(query.order_by(Reaction.id).with_for_update()):
                if reaction.cursor != before[reaction.id]:
                    # Another instance was faster.
                    continue
                new = [task for task in tasks if task.ended_ns > int(reaction.cursor or 0)]
                met = [each for each in new if rules.matches(reaction.kind, reaction.spec, each)]
                if new:
                    reaction.cursor = str(new[-1].ended_ns)
                if met:
                    reaction.last_fired_at = now
                    announced = announcing.match(now, reaction, met, f"project '{project.name}'")
                    await announcing.enqueue(session, now, announced)
