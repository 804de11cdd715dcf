"""What datasets leave that no scheduler keeps any more: removed, but long after.

Schedulers of one state store may have different manifests, and may be away for long. So a dataset
goes only when for weeks nobody said that it is kept, and this process has itself seen for an hour
that nobody does, whatever the clocks of others say.

Nothing is taken from who comes back meanwhile. He marks the dataset first; then, where the mark was
old, he writes the version anew as it stands; then he reads it (`Versions.current`). Here the
version is read first, then the mark, and then it is removed at the revision that was read. So
either the removal fails, or who comes back finds no version. What he makes then has new keys.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from caraway_core.errors import CarawayError, StateAwayError
from caraway_core.ids import TableName
from caraway_core.protocols.results import ResultStore
from caraway_scheduler.acceleration.versions import making
from caraway_scheduler.acceleration.versions.marks import Mark
from caraway_scheduler.acceleration.versions.versions import VersionStore

logger = logging.getLogger(__name__)
GONE_AFTER = timedelta(days=30)
WATCHED_S = 3600.0
_EVERY_S = 600.0
_TOLD_AFTER = timedelta(days=1)
_BEING_MADE = timedelta(hours=6)
"""Younger chunks may be of somebody who keeps the dataset again."""


@dataclass(frozen=True, slots=True)
class _Seen:
    revision: int
    since_s: float


class Unkept:
    """Every scheduler looks; removing may be repeated, and goes on after a crash."""

    def __init__(
        self,
        versions: VersionStore,
        results: ResultStore,
        location: str,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        every_s: float = _EVERY_S,
    ) -> None:
        self._versions = versions
        self._results = results
        self._location = location
        self._clock = clock
        self._monotonic = monotonic
        self._every_s = every_s
        self._seen: dict[TableName, _Seen] = {}
        self._told: set[TableName] = set()

    async def run(self, kept: Callable[[], Collection[TableName]]) -> None:
        """Say what is kept here, and look for what nobody keeps, until cancelled."""
        while True:
            names = list(kept())
            try:
                await self._each(names, self._versions.marks.renew)
                await self.look(names)
            except CarawayError as exc:
                logger.warning(
                    "which datasets are kept is said later", extra={"cause": exc.message}
                )
            except Exception:
                logger.exception("which datasets are kept is said later")
            await asyncio.sleep(self._every_s)

    async def look(self, kept: Collection[TableName]) -> None:
        """Look once at all datasets but those that are kept here.

        Raises:
            StateAwayError: the state store does not answer.
        """
        known = {*await self._versions.names(), *await self._versions.marks.names()}
        others = known.difference(kept)
        self._seen = {name: seen for name, seen in self._seen.items() if name in others}
        self._told &= others
        await self._each(sorted(others), self._look_at)

    async def _each(
        self, names: Iterable[TableName], work: Callable[[TableName], Awaitable[object]]
    ) -> None:
        """Do a work for each dataset; one that is damaged is not to harm the others."""
        for name in names:
            try:
                await work(name)
            except StateAwayError:
                raise
            except CarawayError as exc:
                extra = {"dataset": name, "cause": exc.message}
                logger.warning("whether a dataset is kept is not known", extra=extra)

    async def _look_at(self, name: TableName) -> None:
        versions = self._versions
        # In this order; see above.
        entry = await versions.entry(name)
        mark = await versions.marks.read(name)
        if mark is None:
            # Of a time when nobody said so. It counts from now on.
            await versions.marks.renew(name)
            return
        if not self._is_gone(name, mark):
            return
        if entry is not None:
            if versions.location(entry) != self._location:
                return  # Who can reach that place removes it.
            if not await versions.remove(name, entry.revision):
                return
        await self._remove_rows(name)
        if await versions.marks.remove(name, mark):
            logger.info("rows that nobody kept are removed", extra={"dataset": name})

    def _is_gone(self, name: TableName, mark: Mark) -> bool:
        now_s, age = self._monotonic(), self._clock() - mark.at
        seen = self._seen.get(name)
        if seen is None or seen.revision != mark.revision:
            seen = self._seen[name] = _Seen(mark.revision, now_s)
        if age > _TOLD_AFTER and name not in self._told:
            self._told.add(name)
            extra = {"dataset": name, "removed_after": (mark.at + GONE_AFTER).isoformat()}
            logger.warning("no scheduler keeps a dataset any more; its rows will go", extra=extra)
        return age > GONE_AFTER and now_s - seen.since_s >= WATCHED_S

    async def _remove_rows(self, name: TableName) -> None:
        stored, parts = await self._results.keys(), await self._versions.parts(name)
        for key in sorted({*stored, *parts}):
            made_at = making.made_at(key, name)
            if made_at is not None and self._clock() - made_at > _BEING_MADE:
                await self._results.delete(key)
                await self._versions.forget_parts(name, [key])
