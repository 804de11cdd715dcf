"""Schedulers that keep one dataset, on a loop where a test chooses the next task.

Stores and readers are in memory. Versions, feeds, refreshers and compactors are the real classes.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa

from caraway_acceleration.changes.feed import Feed
from caraway_acceleration.changes.ingesting import SourcePositions
from caraway_acceleration.recipes.recipes import Recipe
from caraway_acceleration.refresh import refresh_events as events
from caraway_acceleration.refresh.backoff import Retries
from caraway_acceleration.refresh.refresher import Refresher
from caraway_acceleration.refresh.reloading import LoadPlan
from caraway_acceleration.upkeep.compaction import Compactor
from caraway_acceleration.versions.current_version import CurrentVersion, Subject
from caraway_acceleration.versions.versions import VersionStore
from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_core.partitions.keys import PartitionBy
from caraway_core.statements import ActiveStatement
from caraway_scheduler.coordination.freshness import Freshness
from caraway_scheduler.coordination.schedule import Timetable
from tests.kit.dataset_sources import GivenSources
from tests.kit.member_worlds import CUT, NAME, SCHEMA, Readers, World, changes, truncation

TRIM_S = 30.0


class Member:
    """One scheduler, or one lifetime of a dataset in it."""

    def __init__(
        self,
        world: World,
        name: str,
        batches: Sequence[bool] | None = None,
        readers: Readers | None = None,
    ) -> None:
        """Keep a dataset that follows these batches; None keeps one that is refreshed."""
        self.world = world
        self.name = name
        self.batches = batches or ()
        self.mode: events.RefreshMode = "full" if batches is None else "changes"
        self.has_followed = asyncio.Event()
        self.successor: Member | None = None
        self.readers = readers or Readers(world)
        self.statements: list[ActiveStatement] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._versions = VersionStore(world.store, f"{name}/1", world.clock)
        self.current = CurrentVersion(
            Subject(NAME, "origin"),
            self.readers,  # type: ignore[arg-type] # implements what CurrentVersion uses
            self._versions,
            world.results,
            self.readers.show,
            world.clock,
        )
        self._freshness = Freshness(self._versions.revisions, self._reach, 1e6)
        recipe = Recipe(NAME, retention_condition="id < 0")
        wanted = events.RefreshSettings(refresh_mode=self.mode, retries=Retries(False, 0))
        plan = LoadPlan(NAME, Timetable(), wanted, recipe, reopens=True)
        self.refresher = Refresher(
            plan, self.current, lambda *_: None, GivenSources(SCHEMA), clock=world.clock
        )
        self.compactor = Compactor(self.current, recipe, world.results, TRIM_S)
        self.feed = Feed(self.current, world.results, self)

    def begin(self) -> "Member":
        self._spawn(self.refresher.run)
        self._spawn(self._follow_versions)
        if not self.world.loop.steps_take_time:
            # A time limit holds only if steps do not take longer.
            self._spawn(partial(self._versions.reads.run, lambda: self.statements))
        self._spawn(self.compactor.run)
        if self.mode == "changes":
            self._spawn(self._feed)
            self._spawn(self.follow_source)
        else:
            self.refresher.source_loaded()
        return self

    async def insert(self, request_id: str | None = None, number: int = 0) -> bool:
        """Send a row; return whether it was acknowledged."""
        number = number or self.world.number()
        self.world.send(number)
        try:
            await self.feed.apply(changes(number), request_id, 1e6)
        except CarawayError:
            return False
        self._acknowledge(number)
        return True

    async def truncate(self) -> None:
        """Send a TRUNCATE, which deletes the rows that were acknowledged before."""
        world = self.world
        async with world.one_truncation:
            world.truncations += 1
            victims = set(world.acknowledged)
            world.acknowledged -= victims
            with suppress(CarawayError):
                await self.feed.apply(truncation(), None, 1e6)
                world.gone |= victims
                self.readers.gone |= victims
                self.readers.check()
            world.truncations += 1

    async def follow_source(self) -> None:
        """Apply batches of one source, of which only some are whole; all schedulers try."""
        first, batches = 1000, self.batches
        while True:
            with suppress(CarawayError):
                await self.settle()
            done = int(self.feed.position or "0")
            if done == len(batches):
                self.has_followed.set()
                return
            whence = SourcePositions(str(done) if done else None, str(done + 1), batches[done])
            self.world.send(first + done)
            with suppress(CarawayError):
                await self.feed.apply(changes(first + done), None, 1e6, whence)
                if batches[done]:
                    for number in range(done + 1):
                        self._acknowledge(first + number)

    async def statement(self) -> None:
        """Read like a statement: everything acknowledged before it began must be visible."""
        world = self.world
        expected, gone = set(world.acknowledged), set(world.gone)
        while True:
            with suppress(CarawayError):
                await self._freshness.reach(frozenset({NAME}))
                break
        if self.readers.have_died:
            return  # The result is discarded.
        found = self.readers.read()
        # A concurrent TRUNCATE may or may not be visible to it.
        missing = (expected & world.acknowledged).difference(found)
        if missing or gone.intersection(found):
            world.faults.append(f"a statement on {self.name} read {found}, without {missing}")

    async def long_statement(self, lasts_s: float) -> None:
        """Read one version as late as a statement may; its rows must not change."""
        world, table = self.world, self.readers.table
        if table is None:
            return
        log = self.readers.logs.get(table.key, ())
        expected = world.rows(table, log)
        sql = f"SELECT * FROM {NAME}"
        statement = ActiveStatement(sql, ({NAME: table},), {table.key: log}, world.loop.time())
        self.statements.append(statement)
        try:
            await asyncio.sleep(lasts_s)
            assert world.rows(table, log) == expected
        except CarawayError as exc:
            world.faults.append(f"a statement of {lasts_s} s on {self.name}: {exc.message}")
        finally:
            self.statements.remove(statement)

    async def refresh(self) -> None:
        """Write to the source and refresh, as INSERT does."""
        number = self.world.number()
        self.world.source.append(number)
        self.world.send(number)
        with suppress(CarawayError):
            await self.refresher.refreshed()
            self._acknowledge(number)

    async def end(self) -> None:
        """Cancel all of its work, at any point."""
        self.current.stop()
        self.feed.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.current.ended()

    async def again(self, readers: Readers | None) -> "Member":
        """End it and start its next lifetime; readers are kept unless the process died."""
        self.readers.have_died = readers is None
        await self.end()
        batches = self.batches if self.mode == "changes" else None
        self.successor = Member(self.world, self.name, batches, readers)
        return self.successor.begin()

    async def until_shown(self) -> None:
        """Wait until its readers see a version."""
        await self.readers.has_shown.wait()
        await self.current.ended()

    async def settle(self) -> None:
        await self.current.look()
        await self.current.show()

    def _acknowledge(self, number: int) -> None:
        self.world.acknowledge(number)
        if number in self.world.acknowledged:
            self.readers.seen.add(number)
        self.readers.check()

    def source_schema(self) -> pa.Schema:
        return SCHEMA

    def partition_terms(self) -> PartitionBy:
        return CUT

    def changes_logged(self) -> None:
        self.refresher.moved()
        self.compactor.news()

    async def _feed(self) -> None:
        while True:
            with suppress(CarawayError):
                await self.feed.ensure_version()
                break
            await asyncio.sleep(1)
        await self.feed.run()

    async def _reach(self, _name: TableName, revision: int) -> None:
        """Return the current lifetime, as the service does."""
        if revision:
            await self.current.reach(revision)
        if self.successor is not None and self.successor.readers is self.readers:
            await self.successor._reach(_name, revision)

    async def _follow_versions(self) -> None:
        async for _ in self._versions.watch():
            self.refresher.news()

    def _spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._tasks.append(asyncio.create_task(self._watched(work)))

    async def _watched(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except Exception as exc:
            self.world.faults.append(f"a task of {self.name} failed: {exc!r}")
