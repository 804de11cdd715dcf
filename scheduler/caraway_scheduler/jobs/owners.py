"""Tracks which job owners are alive, through state store entries that expire.

The key of an entry is the scheduler id, and its value contains the incarnation. So others see at
once that a restarted scheduler has lost its running jobs.
"""

import asyncio
import logging
import uuid
from dataclasses import dataclass
from typing import Self

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError
from caraway_core.protocols.state import StateStore

logger = logging.getLogger(__name__)
OWNERS = "job-owners/"
ROUND_S = 1.5
TTL_S = 6.0
GRACE_S = 3.0
_GOODBYE_S = 1.0


@dataclass(frozen=True, slots=True)
class JobOwner:
    """A scheduler process as the owner of jobs."""

    scheduler_id: str
    incarnation: str

    @classmethod
    def beginning(cls, scheduler_id: str) -> Self:
        """Return the owner that a process is from its start on: one no other process has been."""
        return cls(scheduler_id, uuid.uuid4().hex[:12])

    def __str__(self) -> str:
        return f"{self.scheduler_id}/{self.incarnation}"

    @property
    def key(self) -> str:
        """The key of the owner's entry in the state store."""
        return OWNERS + self.scheduler_id


class DisplacedError(CarawayError):
    """Another process runs under the same scheduler id."""


class Owners:
    """Renews the entry of this process, and reports which owners are gone.

    An owner is gone only after `grace_s` of continuous absence. After an outage of the store all
    entries have expired, and every process needs time to renew its own.
    """

    def __init__(
        self,
        store: StateStore,
        own: JobOwner,
        clock: SecondsClock,
        grace_s: float = GRACE_S,
        ttl_s: float = TTL_S,
        round_s: float = ROUND_S,
    ) -> None:
        self.own = own
        self.round_s = round_s
        self._store = store
        self._clock = clock
        self._grace_s = grace_s
        self._ttl_s = ttl_s
        self._revision: int | None = None
        self._missed_since: dict[str, float] = {}
        self._live: frozenset[str] | None = None

    async def renew(self) -> None:
        """Renew the entry of this process.

        Raises:
            CarawayError: the store cannot be written.
            DisplacedError: another process has written its own entry under this id.
        """
        value = str(self.own).encode()
        renewed = await self._write(value, self._revision)
        if renewed is None:
            standing = await self._store.get(self.own.key)
            if standing is not None and standing.value != value and self._revision is not None:
                raise DisplacedError(
                    f"another scheduler runs under the id '{self.own.scheduler_id}'; give each "
                    "one an id of its own with --scheduler-id"
                )
            renewed = await self._write(value, standing.revision if standing else None)
        self._revision = renewed or self._revision

    async def look(self) -> None:
        """Read the live owners. After a failed read, all absences start over."""
        try:
            entries = await self._store.scan(OWNERS)
        except CarawayError:
            self._live = None
            self._missed_since.clear()
            raise
        self._live = frozenset(entry.value.decode() for entry in entries)
        for owner in self._live:
            self._missed_since.pop(owner, None)

    def is_gone(self, owner: str) -> bool:
        """Return whether this owner's jobs may be taken over; the first call starts its absence."""
        if not owner:
            return True
        if owner == str(self.own) or self._live is None or owner in self._live:
            return False
        scheduler_id = owner.rpartition("/")[0]
        if any(each.rpartition("/")[0] == scheduler_id for each in self._live):
            return True  # Its process has restarted.
        now = self._clock()
        return now - self._missed_since.setdefault(owner, now) >= self._grace_s

    async def withdraw(self) -> None:
        """Delete the entry of this process; if that fails, it expires."""
        if self._revision is None:
            return
        try:
            async with asyncio.timeout(_GOODBYE_S):
                await self._store.compare_and_set(self.own.key, None, expected=self._revision)
        except (CarawayError, TimeoutError):
            logger.info("the entry of this scheduler is left to expire")

    async def _write(self, value: bytes, expected: int | None) -> int | None:
        return await self._store.compare_and_set(
            self.own.key, value, expected=expected, ttl_s=self._ttl_s
        )
