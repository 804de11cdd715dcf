"""Repairs an accelerated dataset whose stored rows are damaged or missing.

First, executors restore chunks that they have in memory or as files. Second, the last snapshot is
used if it has the same rows. Otherwise the rows are loaded again from the source.
"""

import asyncio
import logging

from caraway_acceleration.refresh import refresh_events as events
from caraway_acceleration.refresh.refresher import Refresher
from caraway_acceleration.upkeep.snapshotting import Snapshotting
from caraway_acceleration.versions.current_version import CurrentVersion
from caraway_core.errors import CarawayError, DatasetDamagedError

logger = logging.getLogger(__name__)
_LATE_S = 30.0
_FOUND = "a part of its stored rows is damaged or missing"
_LOOKING = "a copy is being searched on the executors and in the snapshots"
_LOADED = "they are being reloaded from its source"
_DISABLED = "refreshes are disabled: enable them to reload it"
_CHANGES = (
    "they came as changes, which cannot be loaded again: restore the chunks of the result store "
    "from a backup, or send the rows again to a dataset with another name"
)


class Repairing:
    """Repairs one dataset, and reports the progress through its refresher."""

    def __init__(
        self,
        current: CurrentVersion,
        refresher: Refresher,
        snapshots: Snapshotting | None,
        refresh_mode: str,
    ) -> None:
        self._current = current
        self._refresher = refresher
        self._snapshots = snapshots
        self._mended_at = -_LATE_S
        self._advice = {"changes": _CHANGES, "disabled": _DISABLED}.get(refresh_mode, _LOADED)

    async def restore_rows(self) -> None:
        """Restore the rows from copies; without copies, have them reloaded from the source."""
        extra = {"dataset": self._current.name}
        logger.error("stored rows of a dataset are damaged", extra=extra)
        self._refresher.note(events.Damaged(f"{_FOUND}; {_LOOKING}"))
        for source, repair in (("executors", self._put_back), ("snapshot", self._replaced)):
            try:
                if await repair():
                    logger.info("stored rows are repaired", extra={**extra, "from": source})
                    self._refresher.note(events.RowsRestored())
                    return
            except CarawayError as exc:
                logger.warning(
                    "stored rows could not be repaired",
                    extra={**extra, "from": source, "cause": exc.message},
                )
        self._refresher.note(events.RowsLost(f"{_FOUND}; {self._advice}"))

    async def _put_back(self) -> bool:
        """Let executors restore chunks; return whether the version can be read afterwards."""
        current, held = self._current, self._current.ours
        if held is None:
            return False
        version, now = held.version, asyncio.get_running_loop().time()
        count = await current.maker.put_back(current.name, current.table(version), version.log)
        # A statement that started before the last repair may have failed after it.
        if not count and now - self._mended_at > _LATE_S:
            return False
        try:
            await current.load(version)
        except DatasetDamagedError:
            return False
        self._mended_at = now
        return True

    async def _replaced(self) -> bool:
        """Replace the version by the last snapshot, if it has the same rows."""
        current, held = self._current, self._current.ours
        if held is None or self._snapshots is None:
            return False
        following = await self._snapshots.replacement(held)
        if following is None:
            return False
        following = await current.loaded(following)
        async with current.moving:
            await current.flip(following)
            await current.show()
        self._refresher.moved()
        return True
