"""Work that changes cause: written in the transaction of the change, done by any instance.

Entries of one subject are done in order, one at a time. A worker owns the entries that it does
for a while (a lease). If it dies, another one begins them again, so handlers must be idempotent.
"""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Integer, Select, and_, bindparam, delete, exists, or_, select, update
from sqlalchemy.engine import CursorResult
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlalchemy.sql.dml import Delete, Update

from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Delays
from caraway_core.concurrency.clocks import DateClock
from caraway_core.errors import CarawayError
from caraway_management.store.database import Database
from caraway_management.store.tables import OutboxEntry

logger = logging.getLogger(__name__)
LEASE_S = 30.0
_HANDLER_SHARE = 0.7
"""A handler may take this share of the lease, so that no two instances do one entry at a time."""
_DELAYS = Delays(1.0, 60.0, jitter=0.2)
_LONGEST_PROBLEM = 500
_RELEASE_S = 5.0


@dataclass(frozen=True, slots=True)
class Entry:
    """Work to do."""

    id: int
    kind: str
    subject: str
    payload: Mapping[str, Any]
    created_at: datetime
    attempts: int
    """Which attempt this is; the first is 1."""
    failures: int
    """The number of attempts in a row that have failed."""


@dataclass(frozen=True, slots=True)
class Again:
    """The result of a handler that has more to do later, although nothing failed."""

    after_s: float


Handler = Callable[[Entry], Awaitable[Again | None]]
"""Does an entry. An exception means to try again, with growing waits."""


async def enqueue(
    session: AsyncSession,
    now: datetime,
    kind: str,
    subject: str,
    payload: Mapping[str, object],
    *,
    after_s: float = 0.0,
) -> None:
    """Add work to the transaction of the change that causes it."""
    at = now + timedelta(seconds=after_s)
    session.add(
        OutboxEntry(kind=kind, subject=subject, payload=dict(payload), created_at=now, next_at=at)
    )
    await session.flush()


async def hasten(session: AsyncSession, now: datetime, kind: str, subject: str) -> None:
    """Have entries of a subject done now that were to be looked at later.

    Those that failed keep their waits, and one that is being done decides by itself.
    """
    await session.execute(
        update(OutboxEntry)
        .where(
            OutboxEntry.kind == kind,
            OutboxEntry.subject == subject,
            OutboxEntry.next_at > now,
            OutboxEntry.owner.is_(None),
            OutboxEntry.failures == 0,
        )
        .values(next_at=now)
    )


async def release_all(database: Database) -> None:
    """Release the entries of every worker, in a database that only one instance uses."""
    async with database.change() as session:
        await session.execute(update(OutboxEntry).values(owner=None, owned_until=None))


def new_owner() -> str:
    """Return a name for a worker, which no other one has."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(8)}"


class Worker:
    """Does the entries of the kinds that it has handlers for, up to `at_once` at a time."""

    def __init__(
        self,
        database: Database,
        now: DateClock,
        handlers: Mapping[str, Handler],
        owner: str | None = None,
        *,
        at_once: int = 8,
        lease_s: float = LEASE_S,
        every_s: float = 0.5,
    ) -> None:
        """Look for entries every `every_s` seconds while there are none."""
        self.owner = owner or new_owner()
        self._database = database
        self._now = now
        self._handlers = handlers
        self._due = _select_due(handlers)
        self._at_once = at_once
        self._lease_s = lease_s
        self._every_s = every_s

    async def run_once(self) -> int:
        """Do the entries that are due, at most `at_once`; return how many there were."""
        entries = await self._claim(self._at_once)
        await tasks.together([self._do(entry) for entry in entries])
        return len(entries)

    async def run(self) -> None:
        """Do entries until cancelled; those that are not done then are left to other workers."""
        running: set[asyncio.Task[None]] = set()
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    free = self._at_once - len(running)
                    entries = await self._claim(free) if free else []
                    running |= {group.create_task(self._do(entry)) for entry in entries}
                    if len(entries) == free and free:
                        await asyncio.sleep(0)
                    elif running:
                        await asyncio.wait(
                            running, timeout=self._every_s if free else None,
                            return_when=asyncio.FIRST_COMPLETED,
                        )  # fmt: skip
                    else:
                        await asyncio.sleep(self._every_s)
                    running = {task for task in running if not task.done()}
        finally:
            await self._leave()

    async def _claim(self, most: int) -> list[Entry]:
        now = self._now()
        until = now + timedelta(seconds=self._lease_s)
        async with self._database.change() as session:
            rows = list(await session.scalars(self._due, {"now": now, "most": most}))
            for row in rows:
                row.owner, row.owned_until = self.owner, until
                row.attempts += 1
            return [
                Entry(
                    row.id, row.kind, row.subject, row.payload,
                    row.created_at, row.attempts, row.failures,
                )
                for row in rows
            ]  # fmt: skip

    async def _do(self, entry: Entry) -> None:
        try:
            async with asyncio.timeout(self._lease_s * _HANDLER_SHARE):
                again = await self._handlers[entry.kind](entry)
        except Exception as exc:  # noqa: BLE001 -- any failure of any handler is retried
            await self._failed(entry, exc)
            return
        mine = self._mine(entry)
        if again is None:
            is_mine = await self._execute(delete(OutboxEntry).where(mine))
        else:
            is_mine = await self._postpone(entry, again.after_s, 0, None)
        if not is_mine:
            logger.warning("work took longer than its lease", extra=_names(entry))

    async def _failed(self, entry: Entry, exc: Exception) -> None:
        failures = entry.failures + 1
        if isinstance(exc, CarawayError | TimeoutError):
            problem = str(exc) or "it took too long"
            logger.warning("work failed", extra={**_names(entry), "reason": problem})
        else:
            problem = f"{type(exc).__name__}: {exc}"
            logger.error("work failed", exc_info=exc, extra=_names(entry))
        chance = secrets.randbelow(1_000) / 1_000
        delay_s = _DELAYS.delay_s(failures, chance)
        await self._postpone(entry, delay_s, failures, problem[:_LONGEST_PROBLEM])

    async def _postpone(
        self, entry: Entry, after_s: float, failures: int, problem: str | None
    ) -> bool:
        return await self._execute(
            update(OutboxEntry)
            .where(self._mine(entry))
            .values(
                next_at=self._now() + timedelta(seconds=after_s), failures=failures,
                problem=problem, owner=None, owned_until=None,
            )
        )  # fmt: skip

    def _mine(self, entry: Entry) -> Any:
        """Return the condition that no other worker has begun the entry since."""
        return and_(
            OutboxEntry.id == entry.id,
            OutboxEntry.owner == self.owner,
            OutboxEntry.attempts == entry.attempts,
        )

    async def _execute(self, statement: Update | Delete) -> bool:
        async with self._database.change() as session:
            result = await session.execute(statement)
            assert isinstance(result, CursorResult)
            return result.rowcount > 0

    async def _leave(self) -> None:
        """Let other workers do at once what this one began."""
        mine = update(OutboxEntry).where(OutboxEntry.owner == self.owner)
        leaving = tasks.begin(self._execute(mine.values(owner=None, owned_until=None)))
        await asyncio.wait((leaving,), timeout=_RELEASE_S)


def _select_due(kinds: Iterable[str]) -> Select[OutboxEntry]:
    """Select at most `most` entries that may be done `now`: each the first one of its subject.

    To build the statement takes longer than to run it, and workers run it twice a second.
    """
    now = bindparam("now", type_=OutboxEntry.next_at.type)
    earlier = aliased(OutboxEntry)
    is_first = ~exists().where(
        and_(earlier.subject == OutboxEntry.subject, earlier.id < OutboxEntry.id)
    )
    is_free = or_(OutboxEntry.owned_until.is_(None), OutboxEntry.owned_until <= now)
    return (
        select(OutboxEntry)
        .where(OutboxEntry.kind.in_(sorted(kinds)), OutboxEntry.next_at <= now)
        .where(is_free, is_first)
        .order_by(OutboxEntry.id)
        .limit(bindparam("most", type_=Integer))
        .with_for_update(skip_locked=True, of=OutboxEntry)
    )


def _names(entry: Entry) -> dict[str, object]:
    return {
        "entry": entry.id,
        "kind": entry.kind,
        "subject": entry.subject,
        "attempt": entry.attempts,
    }
