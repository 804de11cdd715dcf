"""The times at which workers run, and which scheduler takes each of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Protocol

from caraway_core.protocols.state import StateStore
from caraway_scheduler.coordination.claims import Claim

_LONGEST_SLEEP_S = 30.0
_KEPT_S = 366 * 86_400.0


class Times(Protocol):
    """A clock that can be waited for."""

    def now(self) -> datetime: ...

    async def until(self, moment: datetime) -> None:
        """Return when the clock shows the moment, or a later one."""
        ...


class WallClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def until(self, moment: datetime) -> None:
        # In steps: the clock may be set while this waits.
        while (left_s := (moment - self.now()).total_seconds()) > 0:  # noqa: ASYNC110 -- the clock may be set
            await asyncio.sleep(min(left_s, _LONGEST_SLEEP_S))


class WorkerTurns:
    """Gives each time of a worker to one scheduler, and none while the worker still runs.

      worker-ticks/WORKER    the last time that was taken
      worker-runs/WORKER     the claim of the scheduler that runs it now

    A time that was taken is never given again, so that a scheduler which is lost during a run
    leaves that run undone: a statement that writes is not written twice.
    """

    def __init__(self, store: StateStore, owner: str) -> None:
        """Create the turns of a scheduler process; `owner` is `SCHEDULER/INCARNATION`."""
        self._store = store
        self._owner = owner

    @asynccontextmanager
    async def taken(self, worker: str, due: datetime) -> AsyncIterator[bool]:
        """Yield whether this process is to run the worker now; others do not run it meanwhile.

        Raises:
            StateAwayError: the state store does not respond.
        """
        claim = Claim(self._store, f"worker-runs/{worker}", self._owner)
        async with claim.held() as is_held:
            yield is_held and await self._take(worker, due)

    async def _take(self, worker: str, due: datetime) -> bool:
        key = f"worker-ticks/{worker}"
        value = due.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ").encode()
        entry = await self._store.get(key)
        if entry is not None and entry.value >= value:
            return False
        expected = None if entry is None else entry.revision
        written = await self._store.compare_and_set(key, value, expected=expected, ttl_s=_KEPT_S)
        return written is not None
