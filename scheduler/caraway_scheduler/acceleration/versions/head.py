"""The version of one dataset that readers have, and how they move from one to the next.

Refreshes, changes and the upkeep make versions through the head. Readers of this process see
versions whole and in their order: what they have seen they never see without.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from caraway_core.changes import Logs
from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_core.partitions.keys import PartitionBy
from caraway_core.protocols.results import ResultStore
from caraway_core.tables import Keys, StoredTable
from caraway_scheduler.acceleration.versions import making, reads
from caraway_scheduler.acceleration.versions.claims import Claim
from caraway_scheduler.acceleration.versions.making import NO_LOGS, Maker, StoredSize
from caraway_scheduler.acceleration.versions.requests import Requests
from caraway_scheduler.acceleration.versions.version import DatasetVersion, Superseded, VersionPart
from caraway_scheduler.acceleration.versions.versions import HeldVersion, Successor, VersionStore
from caraway_scheduler.acceleration.versions.wishes import Wishes

logger = logging.getLogger(__name__)
_ORPHANED = timedelta(hours=6)
"""How old chunks are that no version names and that nobody can be making any more."""
_UNFOLLOWED_S = 30.0
Show = Callable[[TableName, StoredTable], Coroutine[Any, Any, None]]


class MovedError(CarawayError):
    """Somebody else has made another version meanwhile."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Of what a head is: a dataset, and how its rows are kept.

    `origin` changes when versions are of something else.
    """

    name: TableName
    origin: str
    keys: Keys | None = None
    is_mapped: bool = False
    replicas: int = 1


class CurrentVersion:
    """What this process knows of the version that stands, and what its readers see.

    Writers hold `moving`, so that those of one process do not fail because of each other. Writers
    of other processes are met by the compare-and-set alone.
    """

    def __init__(
        self,
        subject: Subject,
        maker: Maker,
        versions: VersionStore,
        results: ResultStore,
        show: Show,
        clock: Callable[[], datetime],
        on_moved: Callable[[], None] = lambda: None,
    ) -> None:
        self.subject = subject
        self.maker = maker
        self.clock = clock
        self.moving = asyncio.Lock()
        self.held: HeldVersion | None = None
        self.shown: DatasetVersion | None = None
        self._cleared_at = datetime.min.replace(tzinfo=UTC)
        self._is_over = False
        self._looking, self._showing = asyncio.Lock(), asyncio.Lock()
        self._versions = versions
        self.results = results
        self._show = show
        self._on_moved = on_moved

    @property
    def name(self) -> TableName:
        return self.subject.name

    @property
    def ours(self) -> HeldVersion | None:
        """The version that stands, if it is of this origin, in this place."""
        return self.own(self.held)

    def own(self, held: HeldVersion | None) -> HeldVersion | None:
        """Return what was read if it is of this origin, in this place."""
        if held is None or held.version.origin != self.subject.origin:
            return None
        return held

    async def look(self) -> HeldVersion | None:
        """Read which version stands; returns it if it is ours."""
        before = self.held
        found = await self._versions.current(self.name)
        if found is not None and found.version.location != self.maker.place.title:
            found = replace(found, version=replace(found.version, origin=""))
        self._learn(before, found)
        return self.ours

    def _learn(self, before: HeldVersion | None, found: HeldVersion | None) -> None:
        """Keep what was read, unless something newer was learned during the reading."""
        held = self.held
        if held is before or (found and (held is None or found.revision > held.revision)):
            self.held = found

    async def make(
        self,
        sql: str,
        on_progress: Callable[[StoredSize], None],
        cut: PartitionBy,
        logs: Logs = NO_LOGS,
    ) -> VersionPart:
        """Have rows stored that will be read here. Raises as `Maker.make` does."""
        is_kept = not self.subject.is_mapped
        return await self.maker.make(self.name, sql, on_progress, cut, logs, is_kept=is_kept)

    async def load(self, version: DatasetVersion) -> DatasetVersion:
        """Bring a version to where it will be read, and count its rows.

        Raises:
            QueryError: it cannot be read, or does not fit, or has a key twice.
        """
        if version.pending:
            # Of a long load each part is applied as it comes; else all would be once it is whole.
            await self.maker.load(self.name, self.table(version), version.log)
        rows = await self.maker.load(self.name, self.table(version), version.read_log)
        # Without a log a version of no keys has all the rows that were stored.
        counts = rows is not None and bool(version.read_log or self.subject.keys)
        return replace(version, live_rows=rows if counts else None)

    async def flip(self, successor: Successor) -> None:
        """Make it the version that stands, in place of the one that it was made of.

        Raises:
            MovedError: that one does not stand any more.
        """
        held, before = self.held, successor.before
        successor = await self._without_unread(successor)
        flipped = await self._versions.flip(self.name, successor)
        if flipped is None:
            # What was made here is older than what is there now, or was made of what is not.
            await self.look()
            raise MovedError("another scheduler has made a version meanwhile")
        self._learn(held, flipped)
        await self._remove_old(before.version if before else None, flipped.version)

    async def show(self) -> None:
        """Have readers see the version that stands, if it is ours."""
        async with self._showing:
            held = self.ours
            if held is not None and held.version != self.shown and not self._is_over:
                await self._move_readers(held.version)

    def stop(self) -> None:
        """Show nothing any more: another head has the readers, and they never go back."""
        self._is_over = True

    async def ended(self) -> None:
        """Wait until nothing is being shown."""
        async with self._showing:
            pass

    async def reach(self, revision: int) -> None:
        """Have readers see the version of a revision, or a later one."""
        async with self._looking:
            # Those that waited for another look mostly find that it was enough.
            if self.held is None or self.held.revision < revision:
                await self.look()
        await self.show()

    async def _move_readers(self, version: DatasetVersion) -> None:
        before, table = self.shown, self.table(version)
        if version.read_log or (before is not None and before.read_log):
            self.maker.follow(table, version.read_log)
        if before is None or before.key != version.key:
            await self._show(self.name, table)
            if before is not None and before.read_log:
                # Statements that have begun know the log that they read; for a while longer
                # there may be some that are about to.
                loop = asyncio.get_running_loop()
                loop.call_later(_UNFOLLOWED_S, self.maker.follow, self.table(before), ())
        self.shown = version
        self._on_moved()

    def next(self, held: HeldVersion, **changed: Any) -> Successor:
        """Return what comes after a version: what it does not need is superseded."""
        version, now = held.version, self.clock()
        following = replace(version, number=version.number + 1, **changed)
        past = [Superseded(key, now) for key in sorted(version.keys - following.keys)]
        return Successor(held, replace(following, superseded=(*version.superseded, *past)))

    def anew(
        self, held: HeldVersion | None, part: VersionPart, sql: str, cut: PartitionBy
    ) -> Successor:
        """Return a version of nothing but this part, to stand after what was read."""
        now, location, origin = self.clock(), self.maker.place.title, self.subject.origin
        if held is None:
            return Successor(None, DatasetVersion(1, (part,), location, now, sql, origin, cut=cut))
        return self.next(
            held,
            parts=(part,),
            location=location,
            made_at=now,
            sql=sql,
            origin=origin,
            cut=cut,
            log=(),
            pending=0,
            live_rows=None,
        )

    async def loaded(self, successor: Successor) -> Successor:
        """Bring a version to where it will be read, before it stands. Raises as `load`."""
        return replace(successor, version=await self.load(successor.version))

    def table(self, version: DatasetVersion) -> StoredTable:
        subject = self.subject
        return version.table(
            self.maker.place,
            subject.keys,
            is_mapped=subject.is_mapped,
            replicas=subject.replicas,
        )

    def wishes(self) -> Wishes:
        """Return what users asked of the dataset."""
        return self._versions.wishes(self.name)

    def requests(self) -> Requests:
        """Return which requests were applied to the dataset."""
        return self._versions.requests(self.name)

    def claim(self, work: str = "") -> Claim:
        """Return a claim on a work for one task; without a name it is making versions."""
        return self._versions.claim(self.name, work)

    async def _without_unread(self, successor: Successor) -> Successor:
        """Take from what is superseded what no statement of any scheduler can read.

        It is looked for from time to time only: a flip should not cost one look more.
        """
        now, version = self.clock(), successor.version
        due = {each.key for each in version.superseded if now - each.since >= reads.KEPT}
        if not due or now - self._cleared_at < timedelta(seconds=reads.look_s()):
            return successor
        unread = due - await self._versions.reads.keys()
        self._cleared_at = now
        left = tuple(each for each in version.superseded if each.key not in unread)
        return replace(successor, version=replace(version, superseded=left))

    async def _remove_old(self, before: DatasetVersion | None, version: DatasetVersion) -> None:
        """Remove what no statement can read, and what failed refreshes left long ago.

        What is not known and not old may be what another scheduler is making.
        """
        wanted = version.keys | {each.key for each in version.superseded}
        past = {each.key for each in before.superseded} if before else set()
        if before is not None and before.key == version.key and not past - wanted:
            return  # A change; there is nothing to look for.
        try:
            keys = set(await self.results.keys()) - wanted
            old = [key for key in sorted(keys) if self._is_old(key, past)]
            read = await self._versions.reads.keys() if old else frozenset()
            for key in old:
                if key not in read:
                    await self.results.delete(key)
                    await self._versions.forget_parts(self.name, [key])
        except CarawayError as exc:
            logger.warning("old versions are removed later", extra={"cause": exc.message})

    def _is_old(self, key: str, past: Collection[str]) -> bool:
        made_at = making.made_at(key, self.name)
        return made_at is not None and (key in past or self.clock() - made_at > _ORPHANED)
