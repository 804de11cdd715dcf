"""Claims on work for a dataset: leases in the state store that expire unless renewed.

  accelerating/DATASET[/WORK]    who makes the next version, or does the named work

A claim only avoids duplicate work and does not make writes safe. For that, each write names the
revision that it replaces.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError
from caraway_core.protocols.state import StateStore

CLAIM_TTL_S = 10.0
RENEW_S = CLAIM_TTL_S / 4
_numbers = itertools.count(1)


class Claim:
    """The claim of one task on some work.

    Each task has its own claim, also within a process. So a task that ends late cannot release the
    claim of another task.
    """

    def __init__(self, store: StateStore, key: str, owner: str) -> None:
        """Create a claim; `owner` is the process as `SCHEDULER/INCARNATION`."""
        self._store = store
        self._key = key
        self._owner = owner
        self._value = f"{owner}#{next(_numbers)}".encode()

    async def acquire(self) -> bool:
        """Acquire or renew the claim; returns False if another task holds it.

        Raises:
            StateAwayError: the state store is away.
        """
        entry = await self._store.get(self._key)
        if entry is not None and not self._may_replace(entry.value):
            return False
        expected = entry.revision if entry else None
        written = await self._store.compare_and_set(
            self._key, self._value, expected=expected, ttl_s=CLAIM_TTL_S
        )
        return written is not None

    async def wait(self) -> None:
        """Wait until the claim is free, and acquire it."""
        while not await self.acquire():  # noqa: ASYNC110 -- the state store is polled
            await asyncio.sleep(RENEW_S)

    async def keep(self) -> None:
        """Renew the claim until cancelled.

        Raises:
            CarawayError: another task holds the claim.
        """
        while True:
            await asyncio.sleep(RENEW_S)
            if not await self.acquire():
                raise CarawayError("another scheduler refreshes the dataset")

    @asynccontextmanager
    async def held(self) -> AsyncIterator[bool]:
        """Hold the claim during a `with` block; yields False if another task holds it.

        Raises:
            StateAwayError: the state store is away.
        """
        if not await self.acquire():
            yield False
            return
        renewing = tasks.begin(self._renewed())
        try:
            yield True
        finally:
            renewing.cancel()
            await self.release()

    async def release(self) -> None:
        """Release the claim if it is still held; otherwise it expires."""
        with suppress(CarawayError):
            entry = await self._store.get(self._key)
            if entry is not None and entry.value == self._value:
                await self._store.compare_and_set(self._key, None, expected=entry.revision)

    async def _renewed(self) -> None:
        # If the claim is lost, the work continues: its writes name the revision that they replace.
        while True:
            await asyncio.sleep(RENEW_S)
            with suppress(CarawayError):
                await self.acquire()

    def _may_replace(self, value: bytes) -> bool:
        if value == self._value:
            return True
        # An earlier process of the same scheduler is dead, because a scheduler id runs only once.
        owner = value.decode().partition("#")[0]
        scheduler_id, _, incarnation = owner.rpartition("/")
        mine, _, life = self._owner.rpartition("/")
        return bool(mine) and scheduler_id == mine and incarnation != life
