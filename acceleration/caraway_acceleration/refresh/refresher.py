"""Keeps one accelerated dataset fresh: drives its state machine and performs the effects."""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from caraway_acceleration.refresh import overrides, refreshing
from caraway_acceleration.refresh import refresh_events as events
from caraway_acceleration.refresh.awaited_runs import AwaitedRuns
from caraway_acceleration.refresh.backoff import CopyPauses
from caraway_acceleration.refresh.counting import Counted, Counting, Ended
from caraway_acceleration.refresh.refreshing import RefreshState
from caraway_acceleration.refresh.reloading import LoadPlan, Reloading
from caraway_acceleration.refresh.sources import DatasetSources, VectorModels
from caraway_acceleration.refresh.turns import ParentPosition, VersionTurns
from caraway_acceleration.versions.current_version import CurrentVersion
from caraway_acceleration.versions.making import StoredSize
from caraway_acceleration.versions.version import DatasetVersion
from caraway_acceleration.versions.wishes import Ask
from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.concurrency.clocks import DateClock
from caraway_core.errors import CarawayError, StateAwayError, UnavailableError
from caraway_core.ids import TableName
from caraway_scheduler.coordination.claims import RENEW_S

logger = logging.getLogger(__name__)
_DELAYS = Delays(0.5, RENEW_S, jitter=0.2)
_UNFORESEEN = "the refresh failed for a reason that is in the log of the scheduler"
_MOST_EVENTS = 256
_NEWS, _MOVED = events.VersionSeen(-1), events.VersionSeen(0)
_PARENTS = events.ParentsMoved()
Tell = Callable[[TableName, RefreshState, StoredSize], None]


class Refresher:
    """The refresher of one accelerated dataset in one scheduler.

    Schedulers coordinate through the state store: one makes the next version, and all show it.
    """

    def __init__(
        self,
        plan: LoadPlan,
        current: CurrentVersion,
        tell: Tell,
        sources: DatasetSources,
        clock: DateClock = lambda: datetime.now(UTC),
        counting: Counting | None = None,
        models: VectorModels | None = None,
    ) -> None:
        self._plan = plan
        self._current = current
        self._tell = tell
        self._wishes = current.wishes()
        self._asked = ""
        self._configured = plan.settings
        self._noted: set[events.VersionSeen | events.ParentsMoved] = set()
        self._pauses = CopyPauses()
        reloading = Reloading(plan, current, sources, clock, self, models)
        self._turns = VersionTurns(current, reloading)
        self._clock = clock
        self._counting = counting or Counting()
        self._counted: Counted | None = None
        self._state = self._said = RefreshState(plan.name, plan.settings)
        # None means that the source has become readable.
        self._events: asyncio.Queue[events.Event | None] = asyncio.Queue()
        self._tasks = tasks.Tasks()
        self._run: asyncio.Task[None] | None = None
        self._due: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._has_source = False
        self._ended_at = clock()
        self._stored = StoredSize()
        self._run_began_at = self._ended_at
        self._awaited = AwaitedRuns()

    @property
    def state(self) -> RefreshState:
        """The state after the latest event, once all its effects are done."""
        return self._said

    @property
    def version(self) -> DatasetVersion | None:
        """The version that readers see."""
        return self._current.shown

    @property
    def stored(self) -> StoredSize:
        """The progress of the running refresh."""
        return self._stored

    @property
    def elapsed_s(self) -> float:
        """The time since the running refresh began."""
        return max(0.0, (self._clock() - self._run_began_at).total_seconds())

    def ask(self, asked: events.RefreshAsked) -> None:
        """Request a refresh.

        Raises:
            RefreshRefusedError: the dataset does not support this refresh.
        """
        self.check(asked)
        self._events.put_nowait(asked)
        self._asked = asked.ask or self._asked

    def check(self, asked: events.RefreshAsked) -> None:
        """Check that a refresh can be requested.

        Raises:
            RefreshRefusedError: the dataset does not support this refresh.
            UnavailableError: too many events are queued.
        """
        refreshing.apply(self._state, asked)
        if self._events.qsize() >= _MOST_EVENTS:
            name = self._plan.name
            raise UnavailableError(f"dataset '{name}': too many refreshes are requested; try again")

    def remind(self, ask: Ask) -> None:
        """Do a requested refresh that another scheduler, or an earlier process, did not finish."""
        if ask.id == self._asked:
            return
        try:
            refresh_overrides = overrides.read(ask.body, self._plan.name)
            self.ask(events.RefreshAsked(refresh_overrides, ask=ask.id))
        except (ValueError, CarawayError) as exc:
            extra = {"dataset": self._plan.name, "reason": str(exc)}
            logger.warning("requested refresh cannot be done", extra=extra)

    async def refreshed(self) -> None:
        """Refresh the dataset, and wait until the present rows of its source can be read.

        Raises:
            RefreshRefusedError: the dataset does not support refreshes.
            CarawayError: the refresh failed.
        """
        # A running refresh may have read the source earlier, so request the next one.
        run = events.RunNumber(self._state.runs + 1)
        self.ask(events.RefreshAsked())
        await self._awaited.wait(run)

    def configure(self, settings: events.RefreshSettings) -> None:
        """Change the settings from the next refresh on; does nothing if they are unchanged."""
        if settings != self._configured:
            self._configured = settings
            self._events.put_nowait(events.Configured(settings))

    def source_loaded(self) -> None:
        """Note that the source can be read; no refresh starts before."""
        if not self._has_source:
            self._has_source = True
            self._events.put_nowait(None)

    def news(self) -> None:
        """Note that the state store has another version, possibly of another scheduler."""
        self._note(_NEWS)

    def moved(self) -> None:
        """Note that a change published a version in this process."""
        self._note(_MOVED)

    def follow(self, position: ParentPosition) -> None:
        """Compare its rows with the state of the datasets that it copies."""
        self._turns.position = position

    def parents_moved(self) -> None:
        """Note that datasets which this one copies may have other rows."""
        self._note(_PARENTS)

    def _note(self, seen: events.VersionSeen | events.ParentsMoved) -> None:
        """Queue an event once: its handler reads the latest state anyway."""
        if seen not in self._noted:
            self._noted.add(seen)
            self._events.put_nowait(seen)

    def note(self, event: events.OfRows) -> None:
        """Queue an event about stored rows."""
        self._events.put_nowait(event)

    def fail(self, message: str) -> None:
        """Report why the dataset has no rows, outside a refresh."""
        self._state = replace(self._state, error=message)
        self._say()

    async def run(self) -> None:
        """Process events until cancelled; can be called again after it failed."""
        self._resume()
        try:
            await self._persistently(self._begin)
            while True:
                event = await self._events.get()
                if event is None:
                    self._begin_timetable()
                    await self._persistently(self._recall)
                else:
                    await self._persistently(partial(self._take, event))
        finally:
            for timer in (self._due, self._retry):
                if timer is not None:
                    timer.cancel()
            if self._run is not None:
                self._run.cancel()
                await asyncio.wait((self._run,))
            self._awaited.cancel()

    async def _persistently(self, action: Callable[[], Coroutine[object, object, None]]) -> None:
        """Retry an action until it succeeds, because a lost event would be missed."""
        has_failed, again = False, Backoff(_DELAYS)
        while True:
            try:
                await action()
                if has_failed:
                    self.fail("")
                return
            except StateAwayError as exc:
                logger.warning(
                    "dataset waits for the state store",
                    extra={"dataset": self._plan.name, "cause": exc.message},
                )
            except CarawayError as exc:
                logger.warning(
                    "refresher failed and retries",
                    extra={"dataset": self._plan.name, "cause": exc.message},
                )
                has_failed = True
                self.fail(exc.message)
            await asyncio.sleep(again.failed())

    async def _begin(self) -> None:
        if await self._current.look() is not None:
            await self._take(_NEWS)
        self._say()

    async def _recall(self) -> None:
        ask = await self._wishes.asked()
        if ask is not None:
            self.remind(ask)

    def _begin_timetable(self) -> None:
        """Schedule the first refresh, now that the source can be read."""
        version = self.version if self._plan.reopens else None
        made_at = version.made_at if version is not None else None
        if self._plan.settings.refresh_mode in ("full", "append"):
            due = self._plan.timetable.first(self._clock(), made_at, random.random())
            self._set_due(due)
        if version is not None and self._plan.is_following:
            self.parents_moved()

    async def _take(self, event: events.Event) -> None:
        if isinstance(event, events.VersionSeen):
            self._noted.discard(event)
            held = await self._current.look() if event == _NEWS else self._current.ours
            if held is None or not self._current.is_readable(held.version):
                return
            event = events.VersionSeen(held.version.number)
        elif isinstance(event, events.ParentsMoved):
            self._noted.discard(event)
            if not self._has_source:
                return  # It is compared with them once its source is there.
        try:
            self._state, effects = refreshing.apply(self._state, event)
        except refreshing.RefreshRefusedError as exc:
            logger.warning("refresh refused", extra={"reason": exc.message})
            return
        for effect in effects:
            await self._do(effect)
        if isinstance(event, events.Succeeded | events.VersionSeen) and self._run is None:
            self._schedule()
        self._say()

    async def _do(self, effect: events.Effect) -> None:
        loop = asyncio.get_running_loop()
        match effect:
            case events.BeginRun():
                self._stored = StoredSize()
                self._run_began_at = self._clock()
                self._run = self._tasks.spawn(
                    self._refresh(effect),
                    "refresh a dataset once",
                    partial(self._broke_off, effect.run),
                    dataset=self._plan.name,
                )
            case events.StopRun():
                if self._run is not None:
                    self._run.cancel()
            case events.ShowVersion():
                await self._current.show()
            case events.RetryIn(run, delay_s):
                if self._retry is not None:
                    self._retry.cancel()
                self._retry = loop.call_later(
                    delay_s, self._events.put_nowait, events.RetryDue(run)
                )
            case events.ScheduleNext():
                self._schedule()

    async def _refresh(self, begin: events.BeginRun) -> None:
        run, name = begin.run, self._plan.name
        ended: Ended = events.RunCancelled(run)
        try:
            await asyncio.sleep(self._pauses.rest_s() if begin.is_following else begin.delay_s)
            self._pauses.begin()
            self._counted = self._counting.count_refresh(name, begin.mode)
            ended = events.Succeeded(run, await self._turns.await_turn(begin))
        except BaseException as exc:
            if tasks.ends(exc):
                raise
            failure = _first(exc)
            message = failure.message if isinstance(failure, CarawayError) else _UNFORESEEN
            if not isinstance(failure, CarawayError):
                logger.error("refresh failed", exc_info=failure, extra={"dataset": name})
            logger.warning("refresh failed", extra={"dataset": name, "reason": message})
            ended = events.RunFailed(run, message, random.random())
            await self._give_up(begin)
        finally:
            try:
                await self._turns.release()
            finally:
                self._end(ended)

    def _broke_off(self, run: events.RunNumber, _exc: BaseException) -> None:
        """End a run that failed without reporting its end."""
        self._run = None
        self._events.put_nowait(events.RunFailed(run, _UNFORESEEN, random.random()))

    def _resume(self) -> None:
        """Resume after a failure of `run`: restart what was about to happen."""
        running = self._state.running
        if running is not None and self._run is None:
            failed = events.RunFailed(running.number, _UNFORESEEN, random.random())
            self._events.put_nowait(failed)
        if self._has_source:
            self._events.put_nowait(None)

    def _end(self, event: Ended) -> None:
        self._run, self._ended_at = None, self._clock()
        self._pauses.end()
        counted, self._counted = self._counted, None
        if counted is not None:
            held = self._current.held
            counted.end(event, held.version if held else None)
        self._events.put_nowait(event)
        self._awaited.end(event)

    async def _give_up(self, begin: events.BeginRun) -> None:
        """Delete the request of a failed refresh that is not retried; its user is informed."""
        running = self._state.running
        if running is None or not self._state.settings.retries.allow(running.attempt):
            try:
                await self._wishes.done(begin.ask)
            except CarawayError as exc:
                logger.info(
                    "failed refresh is repeated after a restart", extra={"cause": exc.message}
                )

    def progressed(self, stored: StoredSize) -> None:
        """Note what the running load has stored by now."""
        self._stored = stored

    def _schedule(self) -> None:
        ended_at = self._ended_at
        if self._current.held is not None:
            # Another scheduler may have made a newer version.
            ended_at = max(ended_at, self._current.held.version.made_at)
        self._set_due(self._plan.timetable.after(ended_at, random.random()))

    def _set_due(self, due: datetime | None) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if due is None:
            return
        wait_s = max(0.0, (due - self._clock()).total_seconds())
        loop = asyncio.get_running_loop()
        self._due = loop.call_later(wait_s, self._events.put_nowait, events.Due())

    def _say(self) -> None:
        self._said = self._state
        self._tell(self._plan.name, self._state, self._stored)


def _first(exc: BaseException) -> BaseException:
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    return exc
