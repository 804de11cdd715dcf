"""Decides when snapshots of a dataset are written, and starts it from the last one."""

import asyncio
import logging
from contextlib import suppress
from typing import Literal

from caraway_core.backoff import Backoff, Delays
from caraway_core.errors import CarawayError
from caraway_core.manifest.acceleration import SnapshotSettings
from caraway_scheduler.acceleration.upkeep import snapshots
from caraway_scheduler.acceleration.upkeep.snapshots import DatasetSnapshots
from caraway_scheduler.acceleration.versions.current_version import CurrentVersion, MovedError
from caraway_scheduler.acceleration.versions.versions import HeldVersion, Successor

logger = logging.getLogger(__name__)
_CLAIM = "/snapshot"
_STARTING = Delays(1.0, 30.0, jitter=0.2)
_MAKING = Delays(10.0, 60.0, jitter=0.2)
OnFailure = Literal["warn", "retry", "fallback"]


class Snapshotting:
    """The snapshots of one dataset in one scheduler; only one scheduler works at a time."""

    def __init__(
        self,
        current: CurrentVersion,
        store: DatasetSnapshots,
        wanted: SnapshotSettings,
        on_failure: OnFailure,
    ) -> None:
        self._current = current
        self._store = store
        self._wanted = wanted
        self._on_failure = on_failure
        self._news = asyncio.Event()
        self._batches = 0
        self._key: str | None = None

    def news(self) -> None:
        """Note that readers see another state."""
        self._batches += 1
        self._news.set()

    async def begin(self) -> None:
        """Start a dataset without a version from its last snapshot."""
        if self._wanted.use not in ("enabled", "bootstrap_only"):
            return
        again = Backoff(_STARTING)
        while True:
            try:
                return await self._begin()
            except CarawayError as exc:
                extra = {"dataset": self._current.name, "cause": exc.message}
                if self._on_failure != "fallback":
                    logger.warning("dataset cannot start from its snapshot", extra=extra)
                if self._on_failure != "retry":
                    return
            await asyncio.sleep(again.failed())

    async def replacement(self, held: HeldVersion) -> Successor | None:
        """Return the last snapshot as a version, if it has the same rows.

        Raises:
            CarawayError: as in `DatasetSnapshots.replacement`.
        """
        return await self._store.replacement(held)

    async def run(self) -> None:
        """Write snapshots until cancelled."""
        if self._wanted.use not in ("enabled", "create_only"):
            return
        again = Backoff(_MAKING)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._wanted.every_s):
                    await self._wait()
            try:
                await self._make()
                again.succeeded()
            except CarawayError as exc:
                extra = {"dataset": self._current.name, "cause": exc.message}
                logger.warning("snapshot was not written", extra=extra)
                await asyncio.sleep(again.failed())

    async def _begin(self) -> None:
        current = self._current
        if await current.look() is not None or current.held is not None:
            return
        first = await self._store.start()
        if first is None:
            return
        first = await current.loaded(first)
        async with current.moving:
            with suppress(MovedError):
                await current.flip(first)
            await current.show()
        logger.info("dataset starts from its snapshot", extra={"dataset": current.name})

    async def _wait(self) -> None:
        """Wait until the trigger fires; with a time trigger, until the timeout of the caller."""
        while True:
            await self._news.wait()
            self._news.clear()
            shown = self._current.shown
            match self._wanted.trigger:
                case "refresh_complete" if shown is not None and shown.key != self._key:
                    return
                case "stream_batches" if self._batches >= (self._wanted.every_batches or 1):
                    return

    async def _make(self) -> None:
        async with self._current.claim(_CLAIM).held() as is_mine:
            shown = self._current.shown
            if shown is None or not is_mine:
                return
            self._batches, self._key = 0, shown.key
            is_needed = self._wanted.creation_policy == "always"
            if is_needed or await self._store.state() != snapshots.state_of(shown):
                await self._store.write()
