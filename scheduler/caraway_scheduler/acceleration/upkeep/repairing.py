"""Repairs an accelerated dataset whose stored rows are damaged or missing.

Copies come first: chunks that an executor has in memory, or as a file of its own, are stored again.
Then the last snapshot, if it has the same rows. Only then are the rows loaded from the source.
"""

import asyncio
import logging

from caraway_core.errors import CarawayError, DatasetDamagedError
from caraway_scheduler.acceleration.refresh import refresh_events as events
from caraway_scheduler.acceleration.refresh.keeper import Refresher
from caraway_scheduler.acceleration.upkeep.snapshotting import Snapshotting
from caraway_scheduler.acceleration.versions.head import CurrentVersion

logger = logging.getLogger(__name__)
_LATE_S = 30.0
_FOUND = "a part of its stored rows is damaged or missing"
_LOOKING = "a copy of them is looked for on the executors and among the snapshots"
_LOADED = "they are loaded again from its source"
_DISABLED = "refreshes are disabled: enable them, so that it is loaded again"
_CHANGES = (
    "they came as changes, which cannot be loaded again: put the chunks of the result store back "
    "from a backup, or send the rows again to a dataset of another name"
)


class Repairing:
    """Repairs one dataset, and has its keeper say how that stands."""

    def __init__(
        self,
        head: CurrentVersion,
        keeper: Refresher,
        snapshots: Snapshotting | None,
        refresh_mode: str,
    ) -> None:
        self._head = head
        self._keeper = keeper
        self._snapshots = snapshots
        self._mended_at = -_LATE_S
        self._advice = {"changes": _CHANGES, "disabled": _DISABLED}.get(refresh_mode, _LOADED)

    async def run(self) -> None:
        """Look for copies of the rows; where there are none, have them loaded from the source."""
        extra = {"dataset": self._head.name}
        logger.error("stored rows of a dataset are damaged", extra=extra)
        self._keeper.note(events.Damaged(f"{_FOUND}; {_LOOKING}"))
        for source, repair in (("executors", self._put_back), ("snapshot", self._replaced)):
            try:
                if await repair():
                    logger.info("stored rows are repaired", extra={**extra, "from": source})
                    self._keeper.note(events.RowsRestored())
                    return
            except CarawayError as exc:
                logger.warning(
                    "stored rows are not repaired",
                    extra={**extra, "from": source, "cause": exc.message},
                )
        self._keeper.note(events.RowsLost(f"{_FOUND}; {self._advice}"))

    async def _put_back(self) -> bool:
        """Have executors store what they have; return whether the version can be read by that."""
        head, held = self._head, self._head.ours
        if held is None:
            return False
        version, now = held.version, asyncio.get_running_loop().time()
        count = await head.maker.put_back(head.name, head.table(version), version.log)
        # A statement that began before the last repair may have failed after it.
        if not count and now - self._mended_at > _LATE_S:
            return False
        try:
            await head.load(version)
        except DatasetDamagedError:
            return False
        self._mended_at = now
        return True

    async def _replaced(self) -> bool:
        """Have the last snapshot take the place of the version, if it has the same rows."""
        head, held = self._head, self._head.ours
        if held is None or self._snapshots is None:
            return False
        following = await self._snapshots.replacement(held)
        if following is None:
            return False
        following = await head.loaded(following)
        async with head.moving:
            await head.flip(following)
            await head.show()
        self._keeper.moved()
        return True
