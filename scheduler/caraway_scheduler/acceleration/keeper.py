"""Keeps one accelerated dataset fresh: drives its state machine, and does what that says."""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa

from caraway_core.errors import CarawayError, StateAwayError
from caraway_core.ids import TableName
from caraway_core.protocols.results import ResultStore
from caraway_core.tables import StoredTable
from caraway_scheduler.acceleration import making, refreshing
from caraway_scheduler.acceleration import refresh_events as events
from caraway_scheduler.acceleration.counting import Counted, Counting, Ended
from caraway_scheduler.acceleration.making import Maker, Stored
from caraway_scheduler.acceleration.recipes import Recipe
from caraway_scheduler.acceleration.refreshing import Refreshes
from caraway_scheduler.acceleration.schedule import Timetable
from caraway_scheduler.acceleration.versions import (
    CLAIM_TTL_S,
    HeldVersion,
    Superseded,
    Version,
    Versions,
)

logger = logging.getLogger(__name__)
KEPT = timedelta(seconds=120)
"""How long a version stays that new statements do not read any more: some may have begun."""
_ORPHANED = timedelta(hours=6)
"""How old chunks are that no version names and that nobody can be making any more."""
_CLAIM_EVERY_S = CLAIM_TTL_S / 4
Show = Callable[[TableName, StoredTable], Coroutine[Any, Any, None]]
Tell = Callable[[TableName, Refreshes, Stored], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a dataset asks for. `origin` changes when its versions are of something else."""

    name: TableName
    timetable: Timetable
    settings: events.Settings
    origin: str
    recipe: Recipe
    reopens: bool = False
    """Whether the version of an earlier life of the process needs no refresh at the start."""


class Keeper:
    """One for each accelerated dataset and scheduler. Schedulers agree over the state store: one
    of them makes the next version, all show it."""

    def __init__(
        self,
        plan: Plan,
        maker: Maker,
        versions: Versions,
        results: ResultStore,
        show: Show,
        tell: Tell,
        schema: Callable[[TableName], pa.Schema],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        counting: Counting | None = None,
    ) -> None:
        self._plan = plan
        self._maker = maker
        self._versions = versions
        self._results = results
        self._show = show
        self._tell = tell
        self._schema = schema
        self._clock = clock
        self._counting = counting or Counting()
        self._counted: Counted | None = None
        self._state = Refreshes(plan.name, plan.settings)
        # None: the source can be read now.
        self._events: asyncio.Queue[events.Event | None] = asyncio.Queue()
        self._held: HeldVersion | None = None
        self._shown: Version | None = None
        self._run: asyncio.Task[None] | None = None
        self._due: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._has_source = False
        self._ended_at = clock()
        self._stored = Stored()

    @property
    def state(self) -> Refreshes:
        return self._state

    @property
    def version(self) -> Version | None:
        """The version that readers have."""
        return self._shown

    @property
    def stored(self) -> Stored:
        """How far the refresh under way is."""
        return self._stored

    def ask(self, asked: events.Asked) -> None:
        """Have the dataset refreshed.

        Raises:
            RefreshRefusedError: it is not refreshed in such a way.
        """
        refreshing.apply(self._state, asked)
        self._events.put_nowait(asked)

    def configure(self, settings: events.Settings) -> None:
        """Change what is loaded from the next refresh on."""
        self._events.put_nowait(events.Configured(settings))

    def source_loaded(self) -> None:
        """The source can be read; nothing is refreshed before."""
        if not self._has_source:
            self._has_source = True
            self._events.put_nowait(None)

    def news(self) -> None:
        """The state store has another version, perhaps of another scheduler."""
        self._events.put_nowait(events.Seen(-1))

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            await self._persistently(self._begin)
            while True:
                event = await self._events.get()
                if event is None:
                    self._begin_timetable()
                else:
                    await self._persistently(partial(self._take, event))
        finally:
            for timer in (self._due, self._retry):
                if timer is not None:
                    timer.cancel()
            if self._run is not None:
                self._run.cancel()
                await asyncio.wait((self._run,))

    async def _persistently(self, action: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do it, again while the state store is away: an event that was lost would be missed."""
        while True:
            try:
                return await action()
            except StateAwayError as exc:
                logger.warning(
                    "dataset waits for the state store",
                    extra={"dataset": self._plan.name, "cause": exc.message},
                )
            await asyncio.sleep(_CLAIM_EVERY_S)

    async def _begin(self) -> None:
        await self._look()
        if self._held is not None:
            await self._take(events.Seen(self._held.version.number))
        self._say()

    def _begin_timetable(self) -> None:
        """Decide on the first refresh, now that the source can be read."""
        version = self.version if self._plan.reopens else None
        made_at = version.made_at if version is not None else None
        if self._plan.settings.refresh_mode in ("full", "append"):
            due = self._plan.timetable.first(self._clock(), made_at, random.random())
            self._set_due(due)

    async def _take(self, event: events.Event) -> None:
        if isinstance(event, events.Seen):
            await self._look()
            held = self._held
            if held is None or held.version.origin != self._plan.origin:
                return
            event = events.Seen(held.version.number)
        try:
            self._state, effects = refreshing.apply(self._state, event)
        except refreshing.RefreshRefusedError as exc:
            logger.warning("refresh refused", extra={"reason": exc.message})
            return
        for effect in effects:
            await self._do(effect)
        if isinstance(event, events.Succeeded | events.Seen) and self._run is None:
            self._schedule()
        self._say()

    async def _do(self, effect: events.Effect) -> None:
        loop = asyncio.get_running_loop()
        match effect:
            case events.Begin():
                self._stored = Stored()
                self._run = asyncio.create_task(self._refresh(effect))
            case events.Stop():
                if self._run is not None:
                    self._run.cancel()
            case events.Show():
                await self._show_held()
            case events.RetryIn(run, delay_s):
                if self._retry is not None:
                    self._retry.cancel()
                self._retry = loop.call_later(
                    delay_s, self._events.put_nowait, events.RetryDue(run)
                )
            case events.ScheduleNext():
                self._schedule()

    async def _refresh(self, begin: events.Begin) -> None:
        run, name = begin.run, self._plan.name
        try:
            await asyncio.sleep(begin.delay_s)
            self._counted = self._counting.begin(name, begin.mode)
            async with asyncio.TaskGroup() as tasks:
                await self._claim()
                renewing = tasks.create_task(self._keep_claimed())
                self._events.put_nowait(events.Began(run, 1))
                number = await self._make(begin)
                renewing.cancel()
            await self._release()
        except asyncio.CancelledError:
            self._end(events.Cancelled(run))
            with suppress(CarawayError):
                await self._release()
            raise
        except Exception as exc:
            failure = _first(exc)
            message = failure.message if isinstance(failure, CarawayError) else "internal error"
            if not isinstance(failure, CarawayError):
                logger.error("refresh failed", exc_info=failure, extra={"dataset": name})
            logger.warning("refresh failed", extra={"dataset": name, "reason": message})
            self._end(events.Failed(run, message, random.random()))
        else:
            self._end(events.Succeeded(run, number))

    def _end(self, event: Ended) -> None:
        self._run, self._ended_at = None, self._clock()
        counted, self._counted = self._counted, None
        if counted is not None:
            counted.end(event, self._held.version if self._held else None)
        self._events.put_nowait(event)

    async def _make(self, begin: events.Begin) -> int:
        name = self._plan.name
        # Whoever has the claim builds on what is there now, and takes nothing back that comes
        # later: an append that was made of an older version would lose what is newer.
        await self._look()
        before = self._held
        if before is not None and before.version.origin == self._plan.origin:
            await self._show_held()
        sql = await self._sql(begin)
        made = await self._maker.make(name, sql, self._progressed)
        await self._maker.load(name, self._table(self._next(before, made, sql)))
        version = self._next(before, made, sql)
        flipped = await self._versions.flip(name, before, version)
        if flipped is None:
            # What was made here is older than what is there now, or was made of what is not.
            await self._look()
            raise CarawayError("another scheduler has made a version meanwhile")
        self._held = flipped
        await self._remove_old(before.version if before else None, version)
        return version.number

    async def _sql(self, begin: events.Begin) -> str:
        recipe, source, now = self._plan.recipe, self._schema(self._plan.name), self._clock()
        version = self.version
        if begin.mode == "full" or version is None:
            return recipe.full(begin.refresh_sql, source, now)
        newest = await self._maker.number(recipe.newest(version.schema))
        return recipe.append(begin.refresh_sql, source, version.schema, newest, now)

    def _next(self, held: HeldVersion | None, made: making.Made, sql: str) -> Version:
        now, before = self._clock(), held.version if held else None
        superseded: tuple[Superseded, ...] = ()
        if before is not None:
            recent = (each for each in before.superseded if now - each.since < KEPT)
            superseded = (*recent, Superseded(before.key, now))
        return Version(
            before.number + 1 if before else 1,
            made.key,
            self._maker.place.title,
            made.answer.schema,
            made.answer.chunks,
            now,
            sql,
            self._plan.origin,
            superseded,
        )

    async def _remove_old(self, before: Version | None, version: Version) -> None:
        """Remove what no statement reads any more, and what failed refreshes left long ago.

        What is not known and not old may be what another scheduler is making.
        """
        wanted = {version.key, *(each.key for each in version.superseded)}
        past = {each.key for each in before.superseded} if before else set()
        name, now = self._plan.name, self._clock()
        try:
            for key in await self._results.keys():
                made_at = making.made_at(key, name)
                if made_at is None or key in wanted:
                    continue
                if key in past or now - made_at > _ORPHANED:
                    await self._results.delete(key)
        except CarawayError as exc:
            logger.warning("old versions are removed later", extra={"cause": exc.message})

    async def _show_held(self) -> None:
        assert self._held is not None
        version = self._held.version
        if self._shown is None or self._shown.key != version.key:
            await self._show(self._plan.name, self._table(version))
            self._shown = version

    def _table(self, version: Version) -> StoredTable:
        return StoredTable(version.schema, self._maker.place, version.key, version.chunks)

    async def _look(self) -> None:
        held = await self._versions.current(self._plan.name)
        if held is not None and held.version.location != self._maker.place.title:
            held = replace(held, version=replace(held.version, origin=""))
        self._held = held

    async def _claim(self) -> None:
        while not await self._versions.claim(self._plan.name):
            await asyncio.sleep(_CLAIM_EVERY_S)

    async def _keep_claimed(self) -> None:
        while True:
            await asyncio.sleep(_CLAIM_EVERY_S)
            if not await self._versions.claim(self._plan.name):
                raise CarawayError("another scheduler refreshes the dataset")

    async def _release(self) -> None:
        await self._versions.release(self._plan.name)

    def _progressed(self, stored: Stored) -> None:
        self._stored = stored

    def _schedule(self) -> None:
        ended_at = self._ended_at
        if self._held is not None:
            # Another scheduler may have made a version since.
            ended_at = max(ended_at, self._held.version.made_at)
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
        self._tell(self._plan.name, self._state, self._stored)


def _first(exc: BaseException) -> BaseException:
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    return exc
