"""Collects the orphans of datasets that no scheduler has had in its manifest for 30 days.

Schedulers of one state store may have different manifests, and may be stopped for long. So a
dataset is removed only if nobody has marked it for 30 days. In addition, this process must have
observed that for an hour, whatever other clocks say.

A returning scheduler renews the mark, rewrites the version if the mark was old, and then reads it
(`VersionStore.current`). The collector reads the version, then the mark, then deletes at that
revision. So if both act, either the deletion fails, or the returning scheduler finds no version and
stores its rows under new keys.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta

from caraway_acceleration.versions import making
from caraway_acceleration.versions.usage_marks import UsageMark
from caraway_acceleration.versions.versions import VersionStore
from caraway_core.concurrency.clocks import DateClock, SecondsClock
from caraway_core.errors import CarawayError, StateAwayError
from caraway_core.ids import TableName
from caraway_core.protocols.results import ResultStore

logger = logging.getLogger(__name__)
GONE_AFTER = timedelta(days=30)
WATCHED_S = 3600.0
_EVERY_S = 600.0
_WARN_AFTER = timedelta(days=1)
_BEING_MADE = timedelta(hours=6)
"""Younger chunks may belong to a scheduler that has the dataset in its manifest again."""


@dataclass(frozen=True, slots=True)
class _Seen:
    revision: int
    since_s: float


class OrphanCollector:
    """Collects orphaned datasets; every scheduler runs it, and it continues after a crash."""

    def __init__(
        self,
        versions: VersionStore,
        results: ResultStore,
        location: str,
        clock: DateClock,
        monotonic: SecondsClock = time.monotonic,
        every_s: float = _EVERY_S,
    ) -> None:
        self._versions = versions
        self._results = results
        self._location = location
        self._clock = clock
        self._monotonic = monotonic
        self._every_s = every_s
        self._seen: dict[TableName, _Seen] = {}
        self._warned: set[TableName] = set()

    async def run(self, kept: Callable[[], Collection[TableName]]) -> None:
        """Mark the datasets of this scheduler, and collect orphaned ones, until cancelled."""
        while True:
            names = list(kept())
            try:
                await self._each(names, self._versions.marks.renew)
                await self.look(names)
            except CarawayError as exc:
                logger.warning(
                    "marking of datasets failed and is retried", extra={"cause": exc.message}
                )
            except Exception:
                logger.exception("marking of datasets failed and is retried")
            await asyncio.sleep(self._every_s)

    async def look(self, kept: Collection[TableName]) -> None:
        """Check all datasets once, except those of this scheduler.

        Raises:
            StateAwayError: the state store is away.
        """
        names = {*await self._versions.names(), *await self._versions.marks.names()}
        others = names.difference(kept)
        self._seen = {name: seen for name, seen in self._seen.items() if name in others}
        self._warned &= others
        await self._each(sorted(others), self._look_at)

    async def _each(
        self, names: Iterable[TableName], work: Callable[[TableName], Awaitable[object]]
    ) -> None:
        """Call `work` for each dataset; a damaged one must not affect the others."""
        for name in names:
            try:
                await work(name)
            except StateAwayError:
                raise
            except CarawayError as exc:
                extra = {"dataset": name, "cause": exc.message}
                logger.warning("mark of a dataset cannot be read or written", extra=extra)

    async def _look_at(self, name: TableName) -> None:
        versions = self._versions
        # The order matters; see the module docstring.
        entry = await versions.entry(name)
        mark = await versions.marks.read(name)
        if mark is None:
            # It was stored before marks existed, so its time starts now.
            await versions.marks.renew(name)
            return
        if not self._is_gone(name, mark):
            return
        if entry is not None:
            if versions.location(entry) != self._location:
                return  # A scheduler that can access that location removes it.
            if not await versions.remove(name, entry.revision):
                return
        await self._remove_rows(name)
        if await versions.marks.remove(name, mark):
            logger.info("orphaned dataset was removed", extra={"dataset": name})

    def _is_gone(self, name: TableName, mark: UsageMark) -> bool:
        now_s, age = self._monotonic(), self._clock() - mark.at
        seen = self._seen.get(name)
        if seen is None or seen.revision != mark.revision:
            seen = self._seen[name] = _Seen(mark.revision, now_s)
        if age > _WARN_AFTER and name not in self._warned:
            self._warned.add(name)
            extra = {"dataset": name, "removed_after": (mark.at + GONE_AFTER).isoformat()}
            logger.warning(
                "no scheduler has this dataset in its manifest; its rows will be removed",
                extra=extra,
            )
        return age > GONE_AFTER and now_s - seen.since_s >= WATCHED_S

    async def _remove_rows(self, name: TableName) -> None:
        stored, parts = await self._results.keys(), await self._versions.parts(name)
        for key in sorted({*stored, *parts}):
            made_at = making.made_at(key, name)
            if made_at is not None and self._clock() - made_at > _BEING_MADE:
                await self._results.delete(key)
                await self._versions.forget_parts(name, [key])
