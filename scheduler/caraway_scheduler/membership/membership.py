"""The interface of membership for the rest of the scheduler."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from importlib import metadata

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import ExecutorLostError
from caraway_core.ids import ExecutorId, TableName
from caraway_core.protocols.dispatch import ExecutorStatus
from caraway_core.protocols.fleet import Fleet, TableCatalog
from caraway_core.protocols.state import StateStore
from caraway_core.settings import Address
from caraway_core.suspects import End
from caraway_scheduler.membership import events, state
from caraway_scheduler.membership.drains import Drains
from caraway_scheduler.membership.members import Member
from caraway_scheduler.membership.registrations import Registrations
from caraway_scheduler.membership.roll_call import EVERY_S, RollCall, RollListener

logger = logging.getLogger(__name__)

INSTALL_WAIT_S = 15.0


class Membership:
    """The executors of the cluster: sends heartbeats, installs catalogs and tracks states."""

    def __init__(
        self,
        fleet: Fleet,
        store: StateStore,
        scheduler_id: str,
        clock: SecondsClock = time.monotonic,
        *,
        build: str | None = None,
        every_s: float = EVERY_S,
        install_wait_s: float = INSTALL_WAIT_S,
    ) -> None:
        build = build or metadata.version("caraway")
        # Cached because every statement calls `ready`; a roll is immutable, so identity suffices.
        self._ready: tuple[state.Roll | None, tuple[Member, ...]] = None, ()
        self._clock = clock
        self._every_s = every_s
        self._install_wait_s = install_wait_s
        self._call = RollCall(fleet, build, clock, every_s)
        self._registrations = Registrations(store, scheduler_id, build, clock)
        self._drains = Drains(store, clock)

    async def run(self, listener: RollListener) -> None:
        """Send heartbeats and maintain the registrations until cancelled."""
        try:
            # First, so that a restarted scheduler gives no work to executors that should drain.
            await self._follow_wishes()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._call.run(listener))
                tasks.create_task(self._keep_registered())
                tasks.create_task(self._keep_following())
        finally:
            await self._registrations.withdraw()

    async def wait_changed(self) -> None:
        """Wait until an executor joins, leaves or changes its state."""
        await self._call.changed.wait()
        self._call.changed.clear()

    async def install(
        self, catalog: TableCatalog, known_failures: frozenset[TableName] = frozenset()
    ) -> Mapping[TableName, str]:
        """Install the catalog on every present executor, and return the tables that failed, with
        reasons.

        Executors that are absent or slow receive it later, and get no work before. Tables in
        `known_failures` are not required of executors.
        """
        self._call.catalog = catalog
        self._call.post(events.CatalogWanted(catalog.origin, catalog.version, self._clock()))
        await self._until(lambda: not self._pending(), self._install_wait_s)
        failures: dict[TableName, str] = {}
        for record in self._call.roll.records.values():
            if record.held == catalog.version:
                failures.update(record.failures)
        names = known_failures | failures.keys()
        self._call.post(events.CatalogServed(catalog.version, names, self._clock()))
        return failures

    def ready(self) -> tuple[Member, ...]:
        """Return the executors that may receive new work, ordered by id."""
        roll = self._call.roll
        if self._ready[0] is not roll:
            members = (
                record.member()
                for _, record in sorted(roll.records.items())
                if state.may_work(roll, record)
            )
            self._ready = roll, tuple(members)
        return self._ready[1]

    def executors(self) -> tuple[ExecutorStatus, ...]:
        """Return every known executor, including lost and refused ones."""
        roll, now = self._call.roll, self._clock()
        return tuple(state.status(roll, record, now) for _, record in sorted(roll.records.items()))

    def ends(self) -> Mapping[ExecutorId, tuple[str, End | None]]:
        """Return each executor's current process, and how the previous one ended."""
        return {
            executor_id: (record.description.incarnation, record.description.last_end)
            for executor_id, record in self._call.roll.records.items()
        }

    def lost(self, executor_id: ExecutorId, cause: str) -> None:
        """Report that an executor is lost; all other calls to it fail."""
        self._call.post(events.ExecutorLost(executor_id, cause, self._clock()))

    def draining(self, executor_id: ExecutorId) -> None:
        """Report that an executor accepts no new work, before its next heartbeat does."""
        self._call.post(events.Draining(executor_id, self._clock()))

    async def drain(self, executor_id: ExecutorId) -> None:
        """Let no scheduler give the executor new work, until it leaves or this is undone.

        Raises:
            ExecutorLostError: the executor is not in the cluster.
            CarawayError: the state store cannot be written.
        """
        record = self._call.roll.records.get(executor_id)
        if record is None or record.state in ("lost", "refused"):
            raise ExecutorLostError(executor_id, "it is not in the cluster")
        await self._drains.ask(executor_id, record.description.incarnation)
        self._post_wishes()

    async def undo_drain(self, executor_id: ExecutorId) -> None:
        """Let the executor receive work again.

        Raises:
            CarawayError: the state store cannot be written.
        """
        await self._drains.undo(executor_id)
        self._post_wishes()

    def is_draining(self, executor_id: ExecutorId) -> bool:
        """Return whether the executor is draining."""
        record = self._call.roll.records.get(executor_id)
        return record is not None and record.state == "draining"

    def has_drained(self, executor_id: ExecutorId) -> bool:
        """Return whether every scheduler knows of the drain request, and no task runs there.

        Outputs that it still holds for running statements are recomputed elsewhere if it leaves.
        """
        roll = self._call.roll
        record = roll.records.get(executor_id)
        if record is None or not state.is_wished_away(roll, record):
            return False
        return self._drains.is_settled(executor_id) and not record.description.active_tasks

    @property
    def scheduler_count(self) -> int:
        """The number of schedulers that have a live registration in the state store."""
        return self._registrations.scheduler_count

    async def wait_ready(self, count: int, timeout_s: float) -> bool:
        """Wait until this many executors may receive work; return whether they may."""
        return await self._until(lambda: len(self.ready()) >= count, timeout_s)

    def _channels(self) -> Mapping[ExecutorId, Address]:
        return {
            executor_id: place
            for executor_id, record in self._call.roll.records.items()
            if (place := record.description.channels) is not None and record.lost_at is None
        }

    def _pending(self) -> bool:
        roll = self._call.roll
        return any(state.is_pending(roll, record) for record in roll.records.values())

    async def _keep_registered(self) -> None:
        while True:
            try:
                await self._registrations.renew(self.executors(), self._channels())
            except Exception:
                logger.exception("registrations failed unexpectedly")
            await asyncio.sleep(self._every_s)

    async def _keep_following(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            await self._follow_wishes()

    async def _follow_wishes(self) -> None:
        registered = {
            status.executor_id: status.incarnation
            for status in self.executors()
            if status.is_registered
        }
        try:
            await self._drains.follow(registered)
        except Exception:
            logger.exception("drain requests failed unexpectedly")
        self._post_wishes()

    def _post_wishes(self) -> None:
        if self._drains.wishes != self._call.roll.wishes:
            self._call.post(events.DrainsWanted(self._drains.wishes, self._clock()))

    async def _until(self, holds: Callable[[], bool], timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                while not holds():
                    self._call.turned.clear()
                    await self._call.turned.wait()
        except TimeoutError:
            pass
        return holds()
