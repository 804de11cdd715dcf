"""Judges reactions to rows by their queries."""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import httpx
from sqlalchemy import select

from caraway_core.errors import UnavailableError
from caraway_management.domain import monitoring
from caraway_management.domain import watching as rules
from caraway_management.domain.monitoring import Event, Measured, State, Verdict
from caraway_management.monitoring import announcing, asking, leases
from caraway_management.monitoring.asking import StatementRefusedError
from caraway_management.monitoring.judging import standing_of
from caraway_management.monitoring.looking import LEASE_S
from caraway_management.secrets import api_keys
from caraway_management.services import Services
from caraway_management.store.tables import Project, Reaction

logger = logging.getLogger(__name__)
_MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Bounds:
    """Time limits of queries: of one, of those of a project, and of all."""

    query_s: float = 5.0
    project_s: float = 15.0
    all_s: float = 50.0
    """Less than the lease lasts: no other instance begins before this one has ended."""


class RowJudge:
    """Judges the reactions to rows.

    The queries are run with the key of this service. Those of a project are run one after
    another, so that they do not take its runtime from its users.
    """

    lease = "look for rows"
    kinds = rules.KINDS
    at_once = 16
    timeout_s = None
    """The time of a query is limited as a whole."""

    def __init__(self, services: Services, owner: str, bounds: Bounds | None = None) -> None:
        self._services = services
        self._owner = owner
        self._bounds = bounds or Bounds()
        self._until = 0.0
        self._slow: Counter[tuple[str, int]] = Counter()
        """Rounds in a row in which a query was too slow, by reaction and its revision."""

    def begin_round(self, found: list[tuple[Project, list[Reaction]]]) -> None:
        """Begin a round. Where time is short, projects whose queries fail wait for the others."""
        found.sort(key=lambda each: min(_failures(reaction) for reaction in each[1]))
        self._until = asyncio.get_running_loop().time() + self._bounds.all_s
        present = {_mark(reaction) for _, waiting in found for reaction in waiting}
        self._slow = Counter({mark: self._slow[mark] for mark in self._slow if mark in present})

    async def judge(
        self, client: httpx.AsyncClient, project: Project, waiting: Sequence[Reaction]
    ) -> None:
        """Run the queries of a project, and store the verdicts with their notices."""
        if measured := await self._measure_all(client, project, waiting):
            await self._store(project, waiting, measured)

    async def _measure_all(
        self, client: httpx.AsyncClient, project: Project, waiting: Sequence[Reaction]
    ) -> Mapping[str, Measured]:
        """Run the queries of a project; return their results, by the ids of the reactions."""
        async with self._services.database.read() as session:
            keys = await api_keys.read(session, self._services.sealer, project.id)
        key = keys.get(api_keys.OF_SERVICE)
        clock = asyncio.get_running_loop().time
        if key is None or clock() >= self._until:
            return {}
        until = min(self._until, clock() + self._bounds.project_s)
        measured: dict[str, Measured] = {}
        for reaction in sorted(waiting, key=_failures):
            if measured and clock() >= until:
                measured[reaction.id] = Measured(None, rules.LATE)
            else:
                measured[reaction.id] = await self._measure(client, project, key, reaction)
        return measured

    async def _measure(
        self, client: httpx.AsyncClient, project: Project, key: str, reaction: Reaction
    ) -> Measured:
        sql = rules.statement(reaction.kind, reaction.spec)
        try:
            rows = await self._ask(client, project, key, sql)
        except TimeoutError:
            self._slow[_mark(reaction)] += 1
            is_suspended = self._slow[_mark(reaction)] >= rules.MOST_SLOW
            if is_suspended and await self._answers(client, project, key):
                return Measured(None, rules.SUSPENDED)
            return Measured(None, f"the query did not finish within {self._bounds.query_s:g} s")
        except StatementRefusedError as exc:
            return rules.refused(exc.text)
        except UnavailableError as exc:
            return Measured(None, str(exc))
        self._slow.pop(_mark(reaction), None)
        return rules.measure(rows)

    async def _ask(
        self, client: httpx.AsyncClient, project: Project, key: str, sql: str
    ) -> Sequence[Mapping[str, object]]:
        # The runtime stops a query whose connection is closed.
        async with asyncio.timeout(self._bounds.query_s):
            return await asking.ask(client, project.endpoint or "", key, sql, _MOST_BYTES)

    async def _answers(self, client: httpx.AsyncClient, project: Project, key: str) -> bool:
        """Return whether a runtime answers at all: otherwise it is not a fault of the query."""
        try:
            await self._ask(client, project, key, rules.PROBE)
        except (TimeoutError, UnavailableError):
            return False
        return True

    async def _store(
        self, project: Project, waiting: Sequence[Reaction], measured: Mapping[str, Measured]
    ) -> None:
        """Store the verdicts on the reactions of a project, and their notices, in one transaction.

        A reaction that was changed in the meantime, or judged by another instance, keeps what it
        has.
        """
        now = self._services.now()
        before = {reaction.id: reaction for reaction in waiting}
        verdicts = {id_: _judged(before[id_], each, now) for id_, each in measured.items()}
        changed = [id_ for id_, verdict in verdicts.items() if _differs(before[id_], verdict)]
        if not changed:
            return
        async with self._services.database.change() as session:
            if not await leases.renew(session, now, self.lease, self._owner, LEASE_S):
                return
            query = select(Reaction).where(Reaction.id.in_(changed)).order_by(Reaction.id)
            for reaction in await session.scalars(query.with_for_update()):
                old, verdict = before[reaction.id], verdicts[reaction.id]
                if reaction.revision != old.revision or standing_of(reaction) != standing_of(old):
                    continue
                standing = verdict.standing
                reaction.state, reaction.since = standing.state, standing.since
                reaction.calm_since = standing.calm_since
                reaction.evaluation_unavailable_reason = verdict.measured.reason
                if verdict.measured.reason == rules.SUSPENDED:
                    _suspend(reaction)
                    logger.warning("a reaction is suspended", extra={"reaction": reaction.id})
                if verdict.event is None:
                    continue
                if verdict.event is Event.FIRED:
                    reaction.last_fired_at = now
                else:
                    reaction.last_resolved_at = now
                announced = announcing.rows(now, reaction, verdict, f"project '{project.name}'")
                await announcing.enqueue(session, now, announced)


def _mark(reaction: Reaction) -> tuple[str, int]:
    return reaction.id, reaction.revision


def _suspend(reaction: Reaction) -> None:
    reaction.is_enabled, reaction.state = False, State.SUSPENDED
    reaction.since = reaction.calm_since = None
    reaction.revision += 1


def _failures(reaction: Reaction) -> int:
    """Return what comes first: what can be judged, what had to wait, and what fails."""
    reason = reaction.evaluation_unavailable_reason
    return 0 if reason is None else 1 if reason == rules.LATE else 2


def _judged(reaction: Reaction, measured: Measured, now: datetime) -> Verdict:
    condition = rules.condition(reaction.spec)
    return monitoring.judge(standing_of(reaction), condition, measured, now)


def _differs(reaction: Reaction, verdict: Verdict) -> bool:
    return (
        standing_of(reaction) != verdict.standing
        or reaction.evaluation_unavailable_reason != verdict.measured.reason
    )
