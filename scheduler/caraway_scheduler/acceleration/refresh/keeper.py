"""Keeps one accelerated dataset fresh: drives its state machine, and does what that says."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pyarrow as pa

from caraway_core import tasks
from caraway_core.backoff import Backoff, Delays
from caraway_core.errors import CarawayError, StateAwayError, UnavailableError
from caraway_core.ids import TableName
from caraway_scheduler.acceleration.refresh import overrides, refreshing
from caraway_scheduler.acceleration.refresh import refresh_events as events
from caraway_scheduler.acceleration.refresh.counting import Counted, Counting, Ended
from caraway_scheduler.acceleration.refresh.refreshing import RefreshState
from caraway_scheduler.acceleration.refresh.reloading import LoadPlan, Reloading
from caraway_scheduler.acceleration.refresh.turns import VersionTurns
from caraway_scheduler.acceleration.versions.claims import RENEW_S
from caraway_scheduler.acceleration.versions.head import CurrentVersion
from caraway_scheduler.acceleration.versions.making import StoredSize
from caraway_scheduler.acceleration.versions.version import DatasetVersion
from caraway_scheduler.acceleration.versions.wishes import Ask

logger = logging.getLogger(__name__)
_DELAYS = Delays(0.5, RENEW_S, jitter=0.2)
_UNFORESEEN = "the refresh failed for a reason that is in the log of the scheduler"
_MOST_EVENTS = 256
_NEWS, _MOVED = events.VersionSeen(-1), events.VersionSeen(0)
Tell = Callable[[TableName, RefreshState, StoredSize], None]


class Refresher:
    """One for each accelerated dataset and scheduler. Schedulers agree over the state store: one
    of them makes the next version, all show it."""

    def __init__(
        self,
        plan: LoadPlan,
        head: CurrentVersion,
        tell: Tell,
        schema: Callable[[TableName], pa.Schema],
        size_bytes: Callable[[TableName], int] = lambda _name: 0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        counting: Counting | None = None,
        renew: Callable[[TableName], Awaitable[None]] | None = None,
    ) -> None:
        """Take what a dataset asks for; `renew` has its source looked at before it is loaded."""
        self._plan = plan
        self._head = head
        self._tell = tell
        self._wishes = head.wishes()
        self._asked = ""
        self._configured = plan.settings
        self._noted: set[events.VersionSeen] = set()
        reloading = Reloading(plan, head, schema, size_bytes, clock, renew, self._progressed)
        self._turns = VersionTurns(head, reloading)
        self._clock = clock
        self._counting = counting or Counting()
        self._counted: Counted | None = None
        self._state = self._said = RefreshState(plan.name, plan.settings)
        # None: the source can be read now.
        self._events: asyncio.Queue[events.Event | None] = asyncio.Queue()
        self._tasks = tasks.Tasks()
        self._run: asyncio.Task[None] | None = None
        self._due: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._has_source = False
        self._ended_at = clock()
        self._stored = StoredSize()
        self._awaited: list[tuple[events.RunNumber, asyncio.Future[None]]] = []

    @property
    def state(self) -> RefreshState:
        """What is known, once all that follows from it is done: a version is shown, then told."""
        return self._said

    @property
    def version(self) -> DatasetVersion | None:
        """The version that readers have."""
        return self._head.shown

    @property
    def stored(self) -> StoredSize:
        """How far the refresh under way is."""
        return self._stored

    def ask(self, asked: events.RefreshAsked) -> None:
        """Have the dataset refreshed.

        Raises:
            RefreshRefusedError: it is not refreshed in such a way.
        """
        self.check(asked)
        self._events.put_nowait(asked)
        self._asked = asked.ask or self._asked

    def check(self, asked: events.RefreshAsked) -> None:
        """Look whether a refresh can be asked for.

        Raises:
            RefreshRefusedError: the dataset is not refreshed in such a way.
            UnavailableError: too much waits already.
        """
        refreshing.apply(self._state, asked)
        if self._events.qsize() >= _MOST_EVENTS:
            name = self._plan.name
            raise UnavailableError(f"dataset '{name}': too many refreshes are asked for; try again")

    def remind(self, ask: Ask) -> None:
        """Do what was asked of another scheduler, or before a restart, and is not done yet."""
        if ask.id == self._asked:
            return
        try:
            wanted = overrides.read(ask.body, self._plan.name)
            self.ask(events.RefreshAsked(wanted, ask=ask.id))
        except (ValueError, CarawayError) as exc:
            extra = {"dataset": self._plan.name, "reason": str(exc)}
            logger.warning("a refresh that was asked for is not done", extra=extra)

    async def refreshed(self) -> None:
        """Refresh the dataset, and wait until what is in its source now can be read.

        Raises:
            RefreshRefusedError: it is not refreshed.
            CarawayError: the refresh failed.
        """
        # One that runs may have read the source before; the next one is asked for by this.
        run = events.RunNumber(self._state.runs + 1)
        self.ask(events.RefreshAsked())
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited.append((run, ended))
        await ended

    def configure(self, settings: events.RefreshSettings) -> None:
        """Change what is loaded from the next refresh on; nothing happens if it is as it was."""
        if settings != self._configured:
            self._configured = settings
            self._events.put_nowait(events.Configured(settings))

    def source_loaded(self) -> None:
        """The source can be read; nothing is refreshed before."""
        if not self._has_source:
            self._has_source = True
            self._events.put_nowait(None)

    def news(self) -> None:
        """The state store has another version, perhaps of another scheduler."""
        self._note(_NEWS)

    def moved(self) -> None:
        """The head was moved here, by changes."""
        self._note(_MOVED)

    def _note(self, seen: events.VersionSeen) -> None:
        """Queue it once: whoever takes it looks at what is there by then."""
        if seen not in self._noted:
            self._noted.add(seen)
            self._events.put_nowait(seen)

    def note(self, event: events.OfRows) -> None:
        """Take in what becomes of stored rows."""
        self._events.put_nowait(event)

    def fail(self, message: str) -> None:
        """Tell why the dataset has no rows, though nothing is refreshed."""
        self._state = replace(self._state, error=message)
        self._say()

    async def run(self) -> None:
        """Work until cancelled; may be called again after it failed."""
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
            for _, ended in self._awaited:
                ended.cancel()

    async def _persistently(self, action: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do it, and again while it fails: an event that was lost would be missed."""
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
                    "dataset is not kept", extra={"dataset": self._plan.name, "cause": exc.message}
                )
                has_failed = True
                self.fail(exc.message)
            await asyncio.sleep(again.failed())

    async def _begin(self) -> None:
        if await self._head.look() is not None:
            await self._take(_NEWS)
        self._say()

    async def _recall(self) -> None:
        ask = await self._wishes.asked()
        if ask is not None:
            self.remind(ask)

    def _begin_timetable(self) -> None:
        """Decide on the first refresh, now that the source can be read."""
        version = self.version if self._plan.reopens else None
        made_at = version.made_at if version is not None else None
        if self._plan.settings.refresh_mode in ("full", "append"):
            due = self._plan.timetable.first(self._clock(), made_at, random.random())
            self._set_due(due)

    async def _take(self, event: events.Event) -> None:
        if isinstance(event, events.VersionSeen):
            self._noted.discard(event)
            held = await self._head.look() if event == _NEWS else self._head.ours
            if held is None:
                return
            event = events.VersionSeen(held.version.number)
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
                await self._head.show()
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
            await asyncio.sleep(begin.delay_s)
            self._counted = self._counting.begin(name, begin.mode)
            began = partial(self._events.put_nowait, events.Began(run, 1))
            ended = events.Succeeded(run, await self._turns.take(begin, began))
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
        """End a run that could not even say how it ended."""
        self._run = None
        self._events.put_nowait(events.RunFailed(run, _UNFORESEEN, random.random()))

    def _resume(self) -> None:
        """Go on after a failure of the keeper itself: what it was about to do is begun again."""
        running = self._state.running
        if running is not None and self._run is None:
            failed = events.RunFailed(running.number, _UNFORESEEN, random.random())
            self._events.put_nowait(failed)
        if self._has_source:
            self._events.put_nowait(None)

    def _end(self, event: Ended) -> None:
        self._run, self._ended_at = None, self._clock()
        counted, self._counted = self._counted, None
        if counted is not None:
            held = self._head.held
            counted.end(event, held.version if held else None)
        self._events.put_nowait(event)
        self._tell_waiting(event)

    def _tell_waiting(self, event: Ended) -> None:
        over = [ended for run, ended in self._awaited if run <= event.run]
        self._awaited = [each for each in self._awaited if each[0] > event.run]
        for ended in over:
            if ended.done():
                continue
            match event:
                case events.Succeeded():
                    ended.set_result(None)
                case events.RunFailed(error=error):
                    ended.set_exception(CarawayError(error))
                case events.RunCancelled():
                    ended.set_exception(CarawayError("the refresh was stopped"))

    async def _give_up(self, begin: events.BeginRun) -> None:
        """Forget a refresh that failed and is not tried again, as its user is told."""
        running = self._state.running
        if running is None or not self._state.settings.retries.allow(running.attempt):
            try:
                await self._wishes.done(begin.ask)
            except CarawayError as exc:
                logger.info("it will be tried again after a restart", extra={"cause": exc.message})

    def _progressed(self, stored: StoredSize) -> None:
        self._stored = stored

    def _schedule(self) -> None:
        ended_at = self._ended_at
        if self._head.held is not None:
            # Another scheduler may have made a version since.
            ended_at = max(ended_at, self._head.held.version.made_at)
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
