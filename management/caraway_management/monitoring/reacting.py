"""Judges reactions to events by the task histories of runtimes."""

from collections.abc import Sequence

import httpx
from sqlalchemy import select

from caraway_management.domain import reactions as rules
from caraway_management.domain.reactions import Task
from caraway_management.monitoring import announcing, asking
from caraway_management.secrets import api_keys
from caraway_management.services import Services
from caraway_management.store.tables import Project, Reaction

_MOST_BYTES = 8 * 1024 * 1024


class EventJudge:
    """Judges the reactions to events, by the task histories of their projects.

    A history is read with each key of the project, as a runtime shows a key its own tasks only.
    Refreshes and other work of the runtime itself belong to no key: they are no events.
    """

    lease = "look for events"
    kinds = rules.KINDS
    at_once = 8
    timeout_s = 10.0

    def __init__(self, services: Services) -> None:
        self._services = services

    def begin_round(self, found: list[tuple[Project, list[Reaction]]]) -> None:
        """Begin a round, in the order of the projects."""

    async def judge(
        self, client: httpx.AsyncClient, project: Project, waiting: Sequence[Reaction]
    ) -> None:
        """Read the history of a project, and write notices of its new events."""
        if tasks := await self._tasks(client, project, waiting):
            await self._react(project, waiting, tasks)

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
