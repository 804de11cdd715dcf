"""Follows a source of changes and applies them to a dataset, in one scheduler at a time.

Batches are applied in order, and the next one is read during that. The position in the source is
stored with the changes. So after any failure, following continues from the dataset's position, and
each change is applied exactly once.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from caraway_acceleration.changes.catching_up import SourceProgress
from caraway_acceleration.changes.ingesting import Ingest, SourcePositions
from caraway_acceleration.refresh.backoff import DELAYS
from caraway_core import changes
from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Backoff
from caraway_core.concurrency.clocks import AsyncSleep, DateClock
from caraway_core.errors import CarawayError, DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.change_sources import ChangeSource, PositionLostError, SourceBatch

logger = logging.getLogger(__name__)
Tell = Callable[[CarawayError | None], None]
"""Called with the reason when changes stop arriving, and with None when they arrive again."""
JOINED_ROWS = 50_000
"""Batches of a load are joined up to this size, because each version has a cost for readers."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The interval of claim renewals, and the time limit for applying a batch, in seconds.

    `chance` spreads the waits between attempts.
    """

    claim_every_s: float = 5.0
    apply_s: float = 60.0
    sleep: AsyncSleep = asyncio.sleep
    chance: Callable[[], float] = random.random


class FollowingClaim(Protocol):
    """The right to follow a dataset, which one scheduler has."""

    async def acquire(self) -> bool:
        """Acquire or renew the claim; return False if another scheduler has it."""
        ...

    async def release(self) -> None:
        """Give the claim up, so that a successor need not wait for it to expire."""
        ...


_TIMING = Timing()


class Following:
    """Drives one source of changes; `run` ends only when it is cancelled."""

    def __init__(
        self,
        name: TableName,
        source: ChangeSource,
        ingest: Ingest,
        claim: FollowingClaim,
        tell: Tell,
        timing: Timing = _TIMING,
        clock: DateClock = lambda: datetime.now(UTC),
    ) -> None:
        self._name = name
        self._source = source
        self._ingest = ingest
        self._claim = claim
        self._tell = tell
        self._timing = timing
        self._again = Backoff(DELAYS, timing.chance)
        self._lost: str | None = None
        self._progress = SourceProgress(clock)
        self.is_whole = False
        """True if the dataset matches its source at some point in time, as far as is known here."""

    @property
    def behind_s(self) -> float | None:
        """The lag of the dataset behind its source; None if it is unknown in this process."""
        return self._progress.behind_s

    async def run(self) -> None:
        """Follow the source until cancelled; failures are reported and retried."""
        try:
            while True:
                error = await self._attempt()
                if error is not None:
                    self._progress.lose()
                    self._tell(error)
                    await self._timing.sleep(self._again.failed())
        finally:
            await self._source.aclose()
            with suppress(CarawayError):
                await self._claim.release()

    async def _attempt(self) -> CarawayError | None:
        """Follow the source while the claim is held; return the failure that ended it."""
        try:
            while not await self._claim.acquire():
                self._progress.forget()
                await self._timing.sleep(self._timing.claim_every_s)
            self._progress.note_start()
            await self._follow(await self._ingest.position(self._name))
            return None
        except PositionLostError as exc:
            logger.warning(
                "position in the source of changes is lost",
                extra={"dataset": self._name, "cause": exc.message},
            )
            return exc
        except CarawayError as exc:
            logger.warning(
                "following a source of changes failed",
                extra={"dataset": self._name, "cause": exc.message},
            )
            return exc
        except BaseException as exc:
            if tasks.ends(exc):
                raise
            logger.exception("following a source of changes failed", extra={"dataset": self._name})
            return DatasetError(
                "unavailable",
                f"dataset '{self._name}': its changes cannot be read; the reason is in the log "
                "of the scheduler",
            )

    async def _follow(self, standing: str | None) -> None:
        position = standing
        if position is not None and position == self._lost:
            position = None
        # The batch that is being applied, and one that is read during that.
        ahead: asyncio.Queue[SourceBatch | CarawayError] = asyncio.Queue(1)
        working = [
            tasks.begin(self._read(position, ahead), f"read changes of {self._name}"),
            tasks.begin(self._apply(standing, ahead), f"apply changes of {self._name}"),
            tasks.begin(self._hold(), f"hold {self._name}"),
        ]
        try:
            done, _ = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)

    async def _read(
        self, position: str | None, ahead: "asyncio.Queue[SourceBatch | CarawayError]"
    ) -> None:
        """Put batches into the queue, followed by the error that ends them.

        Incomplete batches, as of a load, are joined, because statements cannot read them
        separately.
        """
        parts: list[SourceBatch] = []
        try:
            async with aclosing(self._source.batches(position)) as batches:
                async for batch in batches:
                    parts.append(batch)
                    rows = sum(each.changes.rows.num_rows for each in parts)
                    if batch.is_whole or rows >= JOINED_ROWS or not rows:
                        await self._put(_joined(parts), ahead)
                        parts = []
        except CarawayError as exc:
            if isinstance(exc, PositionLostError):
                self._lost = position
            if parts:
                await self._put(_joined(parts), ahead)
            await ahead.put(exc)
        await asyncio.Event().wait()  # Wait for cancellation: the queue still has to be applied.

    async def _put(
        self, batch: SourceBatch, ahead: "asyncio.Queue[SourceBatch | CarawayError]"
    ) -> None:
        self._progress.receive()
        await ahead.put(batch)

    async def _apply(
        self, position: str | None, ahead: "asyncio.Queue[SourceBatch | CarawayError]"
    ) -> None:
        """Apply the batches in the queue.

        Raises:
            CarawayError: the source failed, or a batch cannot be applied.
        """
        while True:
            batch = await ahead.get()
            if isinstance(batch, CarawayError):
                raise batch
            if batch.changes.rows.num_rows or batch.position != position:
                await self._ingest.apply(
                    self._name,
                    batch.changes,
                    None,
                    self._timing.apply_s,
                    source=SourcePositions(position, batch.position, batch.is_whole),
                )
                position = batch.position
                await self._source.confirm(position)
            self._progress.apply(batch.made_at, is_whole=batch.is_whole)
            self.is_whole = batch.is_whole
            self._again.succeeded()
            self._lost = None
            self._tell(None)

    async def _hold(self) -> None:
        """Return once another scheduler holds the claim."""
        while await self._claim.acquire():
            await self._timing.sleep(self._timing.claim_every_s)


def _joined(parts: Sequence[SourceBatch]) -> SourceBatch:
    if len(parts) == 1:
        return parts[0]
    return replace(parts[-1], changes=changes.joined([each.changes for each in parts]))
