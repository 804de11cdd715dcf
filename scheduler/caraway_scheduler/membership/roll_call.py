"""Drives the membership state machine: sends heartbeats and performs actions."""

import asyncio
import logging
from collections.abc import Mapping

from caraway_core.concurrency import tasks
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError, ExecutorLostError
from caraway_core.ids import CatalogVersion, ExecutorId, TableName
from caraway_core.protocols.fleet import ANSWER_S, Fleet, Pinned, TableCatalog
from caraway_scheduler.membership import events, state
from caraway_scheduler.membership.events import Action, Event, Step, Take
from caraway_scheduler.membership.state import Roll

logger = logging.getLogger(__name__)

EVERY_S = 1.0
PREPARE_S = 60.0
TOO_LATE = "executor receives work before its rows are loaded"
_PROBE_S = 10.0
_STOOD_STILL_S = ANSWER_S + 1.0
"""A slower heartbeat round says nothing about executors, because this process itself was paused."""
_LIMITS_S: Mapping[Step, float] = {
    "install": 60.0,
    "probe": _PROBE_S + PREPARE_S + 5.0,
    "refuse": 5.0,
}


class RollListener:
    """What a roll call tells and asks the one that gives work to executors; by default nothing."""

    def executors_changed(self) -> None:
        """An executor joined, left, or became able to work."""

    def tables_failed(self, version: CatalogVersion, failures: Mapping[TableName, str]) -> None:
        """Tables failed on an executor after their catalog was served."""

    async def prepare(self, executor_id: ExecutorId) -> None:
        """Prepare an executor before it receives work, besides its catalog; may take long."""

    def pinned(self) -> Pinned | None:
        """Return the catalogs that executors must keep."""
        return None


class RollCall:
    """Keeps the roll of executors; each step runs as a task of its own.

    So an executor that hangs does not delay the others.
    """

    def __init__(
        self,
        fleet: Fleet,
        build: str,
        clock: SecondsClock,
        every_s: float = EVERY_S,
    ) -> None:
        self.roll = Roll(build)
        self.turned = asyncio.Event()
        """Set after every event."""
        self.changed = asyncio.Event()
        """Set when an executor joins, leaves or changes its state."""
        self.catalog: TableCatalog | None = None
        self._fleet = fleet
        self._clock = clock
        self._listener = RollListener()
        self._every_s = every_s
        self._tasks: asyncio.TaskGroup | None = None
        self._steps: dict[ExecutorId, asyncio.Task[None]] = {}
        self._is_deaf = False
        self._stood_still = False

    async def run(self, listener: RollListener) -> None:
        """Send heartbeats until cancelled."""
        self._listener = listener
        async with asyncio.TaskGroup() as group:
            self._tasks = group
            try:
                while True:
                    began = self._clock()
                    await self._call(began)
                    await asyncio.sleep(max(0.0, self._every_s - (self._clock() - began)))
            finally:
                self._tasks = None

    def post(self, event: Event) -> None:
        """Apply an event, and start the actions that follow from it."""
        before = self.roll
        self.roll, actions = state.apply(before, event)
        for action in actions:
            self._begin(action)
        self.turned.set()
        if _view(before) != _view(self.roll):
            _log_changes(before, self.roll)
            self.changed.set()
            try:
                self._listener.executors_changed()
            except Exception:
                # A defect in a listener must not end the heartbeats.
                logger.exception("listener failed on a change of executors")

    async def _call(self, asked_at: float) -> None:
        try:
            # The fleet has a limit of its own; this one protects against a fleet without.
            async with asyncio.timeout(2 * ANSWER_S):
                origin = self.catalog.origin if self.catalog else ""
                answers = await self._fleet.describe(origin, self._listener.pinned())
        except BaseException as exc:
            if tasks.ends(exc):
                raise
            if not self._is_deaf:
                logger.warning("executors cannot be called", exc_info=exc)
            self._is_deaf, answers = True, ()
        else:
            self._is_deaf = False
        for description in answers:
            self.post(events.HeartbeatAnswered(description, asked_at, self._clock()))
        # A scheduler that was paused must not treat all executors as lost, so it asks once more.
        stood_still = self._clock() - asked_at > _STOOD_STILL_S and not self._stood_still
        self._stood_still = stood_still
        if not stood_still:
            self.post(events.TimePassed(self._clock()))

    def _begin(self, action: Action) -> None:
        match action:
            case events.Take() if self._tasks is not None:
                self._steps[action.executor_id] = self._tasks.create_task(self._take(action))
            case events.Abandon(executor_id):
                step = self._steps.pop(executor_id, None)
                if step is not None and step is not asyncio.current_task():
                    step.cancel()
                self._fleet.lost(executor_id)
            case events.Forget(executor_id):
                self._steps.pop(executor_id, None)
            case events.ReportFailedTables(version, failures):
                self._listener.tables_failed(version, failures)

    async def _take(self, take: Take) -> None:
        limit_s = _LIMITS_S[take.step]
        error, failures = "", dict[TableName, str]()
        # The newest catalog is installed, which may be newer than the requested one.
        catalog = self.catalog
        try:
            async with asyncio.timeout(limit_s):
                failures = await self._do(take, catalog)
        except ExecutorLostError as exc:
            return self.post(events.ExecutorLost(take.executor_id, exc.cause, self._clock()))
        except TimeoutError:
            error = f"no answer within {_PROBE_S if take.step == 'probe' else limit_s:g} s"
        except CarawayError as exc:
            error = exc.message
        except BaseException as exc:
            if tasks.ends(exc):
                raise
            logger.exception("step failed", extra={"executor_id": take.executor_id})
            error = "internal error; the log of the scheduler has the cause"
        version = catalog.version if catalog is not None and take.step == "install" else None
        self.post(
            events.StepEnded(
                take.executor_id,
                take.incarnation,
                take.step,
                self._clock(),
                error,
                version,
                failures,
            )
        )

    async def _do(self, take: Take, catalog: TableCatalog | None) -> dict[TableName, str]:
        match take.step:
            case "install" if catalog is not None:
                return dict(await self._fleet.install(take.executor_id, catalog))
            case "probe":
                async with asyncio.timeout(_PROBE_S):
                    await self._fleet.probe(take.executor_id)
                await self._prepared(take.executor_id)
            case "refuse":
                await self._fleet.refuse(take.executor_id, take.reason)
        return {}

    async def _prepared(self, executor_id: ExecutorId) -> None:
        """Load the rows that an executor will serve, for at most PREPARE_S.

        If no other executor can work, skip this: statements then load what they read.
        """
        roll = self.roll
        if not any(state.may_work(roll, record) for record in roll.records.values()):
            return
        began, extra = self._clock(), {"executor_id": executor_id}
        try:
            async with asyncio.timeout(PREPARE_S):
                await self._listener.prepare(executor_id)
        except TimeoutError:
            logger.warning(TOO_LATE, extra={**extra, "after_s": PREPARE_S})
        else:
            took_s = round(self._clock() - began, 1)
            logger.info("executor has loaded its rows", extra={**extra, "took_s": took_s})


def _view(roll: Roll) -> Mapping[ExecutorId, tuple[str, ...]]:
    """Return what others can see of the executors, without constantly changing numbers."""
    return {
        executor_id: (
            record.state,
            record.description.incarnation,
            str(record.held),
            str(state.may_work(roll, record)),
        )
        for executor_id, record in roll.records.items()
    }


def _log_changes(before: Roll, after: Roll) -> None:
    for executor_id, record in after.records.items():
        known = before.records.get(executor_id)
        if known is not None and known.state == record.state:
            continue
        reason = state.status(after, record, record.heard_at).reason
        level = logging.WARNING if record.state in ("lost", "refused") else logging.INFO
        fields = {"executor_id": executor_id, "address": record.description.address}
        logger.log(level, f"executor is {record.state}", extra={**fields, "reason": reason})
