"""The current version of one dataset: publishes new versions and moves readers to them.

Refreshes, changes and compactions publish versions through `CurrentVersion`. Readers of this
process see complete versions in order, and never go back to an older one.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from caraway_acceleration.versions import making, reads
from caraway_acceleration.versions.making import NO_LOGS, StoredSize, VersionMaker
from caraway_acceleration.versions.requests import Requests
from caraway_acceleration.versions.version import DatasetVersion, Superseded, VersionPart
from caraway_acceleration.versions.versions import HeldVersion, Successor, VersionStore
from caraway_acceleration.versions.wishes import Wishes
from caraway_core.changes import Logs
from caraway_core.concurrency.clocks import DateClock
from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_core.partitions.keys import PartitionBy
from caraway_core.protocols.results import ResultStore
from caraway_core.tables import Keys, StoredTable
from caraway_scheduler.coordination.claims import Claim

logger = logging.getLogger(__name__)
_ORPHANED = timedelta(hours=6)
"""The age from which chunks that no version names count as orphaned."""
_UNFOLLOWED_S = 30.0
Show = Callable[[TableName, StoredTable], Coroutine[Any, Any, None]]


class MovedReaders(Protocol):
    """Takes note that readers of a dataset see another state."""

    def moved(self, name: TableName) -> None:
        """Note that readers of a dataset see another state."""
        ...


class MovedError(CarawayError):
    """Another scheduler published a version first."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A dataset and how its rows are kept.

    `origin` changes when versions of an earlier definition must not be used any more.
    `earlier_origin` is what the release before stores and reads for the same definition. A dataset
    that `is_followed` gets its rows from a source of changes, and is not read before they came.
    """

    name: TableName
    origin: str
    keys: Keys | None = None
    is_mapped: bool = False
    replicas: int = 1
    is_followed: bool = False
    earlier_origin: str = ""

    def accepts(self, fingerprint: str) -> bool:
        """Return whether a version with this fingerprint has the rows of this definition."""
        return bool(fingerprint) and fingerprint in (self.origin, self.earlier_origin)

    @property
    def names(self) -> Mapping[str, Any]:
        """The fields of a version that name this definition, also to the release before."""
        return {"origin": self.earlier_origin or self.origin, "definition": self.origin}


class CurrentVersion:
    """The current version of a dataset as this process knows it, and the version that readers see.

    Writers of this process hold `moving`, so that they do not conflict with each other. Conflicts
    with other processes are detected by compare-and-set only.
    """

    def __init__(
        self,
        subject: Subject,
        maker: VersionMaker,
        versions: VersionStore,
        results: ResultStore,
        show: Show,
        clock: DateClock,
        readers: MovedReaders | None = None,
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
        self._readers = readers

    @property
    def name(self) -> TableName:
        """The name of the dataset."""
        return self.subject.name

    @property
    def _primary_key(self) -> tuple[str, ...]:
        return self.subject.keys.primary if self.subject.keys else ()

    @property
    def ours(self) -> HeldVersion | None:
        """The current version if it has this origin and location, otherwise None."""
        return self.own(self.held)

    def own(self, held: HeldVersion | None) -> HeldVersion | None:
        """Return a version if it has this origin, otherwise None."""
        if held is None or not self.subject.accepts(held.version.fingerprint):
            return None
        return held

    async def look(self) -> HeldVersion | None:
        """Read the current version from the state store; returns it if it is usable here."""
        before = self.held
        found = await self._versions.current(self.name)
        if found is not None and found.version.location != self.maker.place.title:
            found = replace(found, version=replace(found.version, origin="", definition=""))
        self._learn(before, found)
        return self.ours

    def _learn(self, before: HeldVersion | None, found: HeldVersion | None) -> None:
        """Keep the version that was read, unless a newer one was learned in the meantime."""
        held = self.held
        if held is before or (found and (held is None or found.revision > held.revision)):
            self.held = found
            ours = self.own(found)
            if ours is not None and self.subject.is_followed and not self._primary_key:
                # Its log means nothing without the key, also while the source is away.
                self.adopt(ours.version.primary_key)

    def adopt(self, primary_key: tuple[str, ...]) -> None:
        """Use the primary key of the source, as the manifest has none."""
        if primary_key:
            keys = replace(self.subject.keys or Keys(), primary=primary_key)
            self.subject = replace(self.subject, keys=keys)

    async def make(
        self,
        sql: str,
        on_progress: Callable[[StoredSize], None],
        partition_by: PartitionBy,
        logs: Logs = NO_LOGS,
    ) -> VersionPart:
        """Store the rows of a statement as a part of a new version.

        Raises:
            QueryError: as in `VersionMaker.make`.
        """
        is_kept = not self.subject.is_mapped
        return await self.maker.make(
            self.name, sql, on_progress, partition_by, logs, is_kept=is_kept
        )

    async def load(self, version: DatasetVersion) -> DatasetVersion:
        """Load a version on the executors that will serve it, and count its rows.

        Raises:
            QueryError: the version cannot be read, does not fit, or has a duplicate key.
        """
        if version.pending:
            # Pending entries are loaded as they arrive, rather than all at once when they are
            # complete.
            await self.maker.load(self.name, self.table(version), version.log)
        rows = await self.maker.load(self.name, self.table(version), version.read_log)
        # Without a log and keys, all stored rows count, and the version knows their number.
        counts = rows is not None and bool(version.read_log or self.subject.keys)
        return replace(version, live_rows=rows if counts else None)

    async def flip(self, successor: Successor) -> None:
        """Publish a version in place of the one that it was made from.

        Raises:
            MovedError: that version is not the current one any more.
        """
        held, before = self.held, successor.before
        successor = await self._without_unread(successor)
        flipped = await self._versions.flip(self.name, successor)
        if flipped is None:
            # The version that was made here is based on one that is no longer current.
            await self.look()
            raise MovedError("another scheduler has published a version in the meantime")
        self._learn(held, flipped)
        await self._remove_old(before.version if before else None, flipped.version)

    def is_readable(self, version: DatasetVersion) -> bool:
        """Return whether statements may read a version: not before its source is loaded."""
        return not self.subject.is_followed or version.was_loaded

    async def show(self) -> None:
        """Let readers see the current version, if it is usable here and was loaded."""
        async with self._showing:
            held = self.ours
            if held is None or held.version == self.shown or self._is_over:
                return
            if self.is_readable(held.version):
                await self._move_readers(held.version)

    def stop(self) -> None:
        """Show no more versions: a successor serves the readers, and they must not go back."""
        self._is_over = True

    async def ended(self) -> None:
        """Wait until no version is being shown."""
        async with self._showing:
            pass

    async def reach(self, revision: int) -> None:
        """Let readers see the version of a revision, or a later one."""
        async with self._looking:
            # A call that waited for another look usually finds that it was sufficient.
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
                # Running statements keep the log that they started with; others are about to start
                # with it.
                loop = asyncio.get_running_loop()
                loop.call_later(_UNFOLLOWED_S, self.maker.follow, self.table(before), ())
        self.shown = version
        if self._readers is not None:
            self._readers.moved(self.name)

    def next(self, held: HeldVersion, **changed: Any) -> Successor:
        """Return the successor of a version; keys that it does not need are superseded."""
        version, now = held.version, self.clock()
        key = self._primary_key
        following = replace(version, number=version.number + 1, primary_key=key, **changed)
        past = [Superseded(key, now) for key in sorted(version.keys - following.keys)]
        return Successor(held, replace(following, superseded=(*version.superseded, *past)))

    def anew(
        self, held: HeldVersion | None, part: VersionPart, sql: str, partition_by: PartitionBy
    ) -> Successor:
        """Return a successor that consists of one part only."""
        now, location, names = self.clock(), self.maker.place.title, self.subject.names
        if held is None:
            first = DatasetVersion(
                1, (part,), location, now, sql, partition_by=partition_by,
                primary_key=self._primary_key, **names,
            )  # fmt: skip
            return Successor(None, first)
        return self.next(
            held,
            parts=(part,),
            location=location,
            made_at=now,
            sql=sql,
            partition_by=partition_by,
            log=(),
            pending=0,
            live_rows=None,
            **names,
        )

    async def loaded(self, successor: Successor) -> Successor:
        """Load a version before it is published.

        Raises:
            QueryError: as in `load`.
        """
        return replace(successor, version=await self.load(successor.version))

    def table(self, version: DatasetVersion) -> StoredTable:
        """Return the table spec of a version."""
        subject = self.subject
        return version.table(
            self.maker.place,
            subject.keys,
            is_mapped=subject.is_mapped,
            replicas=subject.replicas,
        )

    def wishes(self) -> Wishes:
        """Return the requests of users for this dataset."""
        return self._versions.wishes(self.name)

    def requests(self) -> Requests:
        """Return the applied change requests of this dataset."""
        return self._versions.requests(self.name)

    def claim(self, work: str = "") -> Claim:
        """Return a claim on named work for one task; without a name, on making versions."""
        return self._versions.claim(self.name, work)

    async def _without_unread(self, successor: Successor) -> Successor:
        """Drop superseded keys that no statement of any scheduler can read.

        This is done only from time to time, so that a flip usually needs no extra read.
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
        """Delete chunks that no statement can read, and old leftovers of failed refreshes.

        Unknown chunks that are not old may belong to a version that another scheduler is making.
        """
        wanted = version.keys | {each.key for each in version.superseded}
        past = {each.key for each in before.superseded} if before else set()
        if before is not None and before.key == version.key and not past - wanted:
            return  # Only the log changed, so nothing was superseded.
        try:
            keys = set(await self.results.keys()) - wanted
            old = [key for key in sorted(keys) if self._is_old(key, past)]
            read = await self._versions.reads.keys() if old else frozenset()
            for key in old:
                if key not in read:
                    await self.results.delete(key)
                    await self._versions.forget_parts(self.name, [key])
        except CarawayError as exc:
            logger.warning(
                "removal of old versions failed and is retried", extra={"cause": exc.message}
            )

    def _is_old(self, key: str, past: Collection[str]) -> bool:
        made_at = making.made_at(key, self.name)
        return made_at is not None and (key in past or self.clock() - made_at > _ORPHANED)
