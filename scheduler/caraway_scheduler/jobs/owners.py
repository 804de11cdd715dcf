"""Which processes that own jobs live: each renews an entry that expires without it.

The entry is kept under the id of the scheduler and holds the incarnation, so that a process that
starts anew under its old id is at once known to have forgotten what it ran.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from caraway_core.errors import CarawayError
from caraway_core.protocols.state import StateStore

logger = logging.getLogger(__name__)
OWNERS = "job-owners/"
TTL_S = 6.0
GRACE_S = 3.0
_GOODBYE_S = 1.0


@dataclass(frozen=True, slots=True)
class JobOwner:
    """A process: what its jobs name as their owner."""

    scheduler_id: str
    incarnation: str

    def __str__(self) -> str:
        return f"{self.scheduler_id}/{self.incarnation}"

    @property
    def key(self) -> str:
        return OWNERS + self.scheduler_id


class DisplacedError(CarawayError):
    """Another process runs under the same id."""


class Owners:
    """Keeps the entry of this process alive, and tells whose entries are gone.

    An owner counts as gone only after it was missed for `grace_s` without a break: when the store
    itself was away, the entries of all have expired, and everybody needs time to come back.
    """

    def __init__(
        self,
        store: StateStore,
        own: JobOwner,
        clock: Callable[[], float],
        grace_s: float = GRACE_S,
        ttl_s: float = TTL_S,
    ) -> None:
        self.own = own
        self._store = store
        self._clock = clock
        self._grace_s = grace_s
        self._ttl_s = ttl_s
        self._revision: int | None = None
        self._missed_since: dict[str, float] = {}
        self._live: frozenset[str] | None = None

    async def renew(self) -> None:
        """Write the entry of this process anew.

        Raises:
            CarawayError: the store cannot be written to.
            DisplacedError: another process has put its own entry in the place.
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
        """See who is there. A look that fails makes everybody's absence begin anew."""
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
        """Whether jobs of this owner may be taken. The first question begins its absence."""
        if not owner:
            return True
        if owner == str(self.own) or self._live is None or owner in self._live:
            return False
        scheduler_id = owner.rpartition("/")[0]
        if any(each.rpartition("/")[0] == scheduler_id for each in self._live):
            return True  # Its process has started anew.
        now = self._clock()
        return now - self._missed_since.setdefault(owner, now) >= self._grace_s

    async def withdraw(self) -> None:
        """Take the entry back; if that fails, it expires."""
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
