"""Decides when snapshots of a dataset are written, and starts it from the last one."""

import asyncio
import logging
from contextlib import suppress
from typing import Literal

from caraway_acceleration.upkeep.snapshots import DatasetSnapshots
from caraway_acceleration.versions.current_version import CurrentVersion, MovedError
from caraway_acceleration.versions.versions import HeldVersion, Successor
from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.errors import CarawayError, UnavailableError
from caraway_core.manifest.values.acceleration import SnapshotSettings

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
        self.store = store
        self._wanted = wanted
        self._on_failure = on_failure
        self._news = asyncio.Event()
        self._batches = 0
        self._key: str | None = None
        self._working = asyncio.Lock()

    def news(self) -> None:
        """Note that readers see another state."""
        self._batches += 1
        self._news.set()

    async def start_from_snapshot(self) -> None:
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
        return await self.store.replacement(held)

    async def choose(self, number: int) -> None:
        """Replace the current version by the rows of a snapshot, and start from it from now on.

        Raises:
            NotFoundError: there is none of this number, or none any more.
            InvalidRequestError: it has another origin.
            UnavailableError: the dataset changed meanwhile, or another scheduler works on this.
            CarawayError: it cannot be read, or not be stored here.
        """
        current = self._current
        claim = current.claim(_CLAIM)
        async with self._working, claim.held() as is_mine:
            if not is_mine:
                raise UnavailableError(
                    f"dataset '{current.name}': another scheduler writes or chooses a snapshot "
                    "now; try again"
                )
            await current.look()
            snapshot, following = await self.store.restored(number, current.held)
            following = await current.loaded(following)
            choice = await self.store.choose(snapshot, following.version)
            try:
                async with current.moving:
                    await current.flip(following)
                    await current.show()
            except CarawayError as exc:
                await self.store.forget(choice)
                if not isinstance(exc, MovedError):
                    raise
                raise UnavailableError(
                    f"dataset '{current.name}' changed while the snapshot was read; try again"
                ) from exc
            await self.store.forget_earlier(choice)
        extra = {"dataset": current.name, "snapshot": number}
        logger.info("a snapshot was chosen and is read", extra=extra)

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
        first = await self.store.start()
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
        async with self._working, self._current.claim(_CLAIM).held() as is_mine:
            shown = self._current.shown
            if shown is None or not is_mine:
                return
            self._batches, self._key = 0, shown.key
            is_needed = self._wanted.creation_policy == "always"
            if is_needed or not await self.store.holds(shown):
                await self.store.write()
