"""Registers this scheduler and the executors that it sees in the state store.

Every scheduler sees every executor and writes the same value under the same key. The first to renew
an entry renews it for all.
"""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError
from caraway_core.ids import ExecutorId
from caraway_core.protocols.dispatch import ExecutorStatus
from caraway_core.protocols.state import StateStore
from caraway_core.settings import Address

logger = logging.getLogger(__name__)

TTL_S = 15.0
EXECUTORS = "executors/"
SCHEDULERS = "schedulers/"
CHANNELS = "channels/"
CHANNELS_TTL_S = 3600.0
"""An address is a hint for schedulers that start without the head, so it outlives its writers."""
_ROUND_S = 5.0
_GOODBYE_S = 1.0


@dataclass(frozen=True, slots=True)
class _Written:
    value: bytes
    revision: int
    at: float


class Registrations:
    """Keeps the entries of one scheduler alive; an unavailable store delays no other work."""

    def __init__(
        self, store: StateStore, scheduler_id: str, build: str, clock: SecondsClock
    ) -> None:
        self.scheduler_count = 1
        self._store = store
        self._own_key = SCHEDULERS + scheduler_id
        self._own_value = _value(scheduler_id=scheduler_id, build=build)
        self._clock = clock
        self._written: dict[str, _Written] = {}
        self._counted_at: float | None = None
        self._is_away = False

    async def renew(
        self, executors: Sequence[ExecutorStatus], channels: Mapping[ExecutorId, Address]
    ) -> None:
        """Write entries that changed or expire soon, and delete those of lost executors.

        `channels` has the addresses at which executors listen.
        """
        try:
            async with asyncio.timeout(_ROUND_S):
                await self._renew(executors, channels)
        except (CarawayError, TimeoutError) as exc:
            if not self._is_away:
                reason = getattr(exc, "message", f"no answer within {_ROUND_S:g} s")
                logger.warning("registrations cannot be stored", extra={"reason": reason})
            self._is_away = True
        else:
            if self._is_away:
                logger.info("registrations are stored again")
            self._is_away = False

    async def withdraw(self) -> None:
        """Delete this scheduler's own entry; if that fails, it expires."""
        written = self._written.pop(self._own_key, None)
        if written is None:
            return
        try:
            async with asyncio.timeout(_GOODBYE_S):
                await self._store.compare_and_set(self._own_key, None, expected=written.revision)
        except (CarawayError, TimeoutError):
            pass

    async def _renew(
        self, executors: Sequence[ExecutorStatus], channels: Mapping[ExecutorId, Address]
    ) -> None:
        present = {
            EXECUTORS + status.executor_id: _registration(status)
            for status in executors
            if status.is_registered
        }
        for key, value in {**present, self._own_key: self._own_value}.items():
            await self._keep(key, value, TTL_S)
        for executor_id, place in channels.items():
            value = _value(host=place.host, port=place.port)
            await self._keep(CHANNELS + executor_id, value, CHANNELS_TTL_S)
        for key in self._written.keys() - present.keys() - {self._own_key}:
            if key.startswith(CHANNELS):
                continue  # It expires. The executor may only be out of reach of this scheduler.
            written = self._written.pop(key)
            await self._store.compare_and_set(key, None, expected=written.revision)
        await self._count()

    async def _keep(self, key: str, value: bytes, ttl_s: float) -> None:
        written = self._written.get(key)
        if written and written.value == value and not self._is_due(written.at, ttl_s):
            return
        revision = await self._write(key, value, written.revision if written else None, ttl_s)
        if revision is None:
            # Another scheduler wrote it first, or the entry expired.
            standing = await self._store.get(key)
            if standing is not None and standing.value == value:
                revision = standing.revision
            else:
                expected = standing.revision if standing else None
                revision = await self._write(key, value, expected, ttl_s)
        if revision is not None:
            self._written[key] = _Written(value, revision, self._clock())

    async def _write(
        self, key: str, value: bytes, expected: int | None, ttl_s: float
    ) -> int | None:
        return await self._store.compare_and_set(key, value, expected=expected, ttl_s=ttl_s)

    async def _count(self) -> None:
        if self._counted_at is None or self._is_due(self._counted_at):
            self.scheduler_count = len(await self._store.scan(SCHEDULERS))
            self._counted_at = self._clock()

    def _is_due(self, at: float, ttl_s: float = TTL_S) -> bool:
        return self._clock() - at >= ttl_s / 3


async def others_are_registered(store: StateStore, scheduler_id: str) -> bool:
    """Return whether another scheduler is registered; False if the store does not say."""
    try:
        async with asyncio.timeout(_ROUND_S):
            entries = await store.scan(SCHEDULERS)
    except (CarawayError, TimeoutError):
        return False
    return any(entry.key != SCHEDULERS + scheduler_id for entry in entries)


async def stored_channels(store: StateStore) -> Mapping[ExecutorId, Address]:
    """Return the addresses at which executors listened for channels not long ago.

    Raises:
        CarawayError: the store does not answer.
    """
    found = {}
    for entry in await store.scan(CHANNELS):
        facts = json.loads(entry.value)
        executor_id = ExecutorId(entry.key.removeprefix(CHANNELS))
        found[executor_id] = Address(facts["host"], facts["port"])
    return found


def _registration(status: ExecutorStatus) -> bytes:
    return _value(
        executor_id=status.executor_id,
        incarnation=status.incarnation,
        address=status.address,
        cores=status.cores,
        memory_bytes=status.memory_bytes,
        protocol_version=status.protocol_version,
        build=status.build,
        is_draining=status.state == "draining",
    )


def _value(**facts: object) -> bytes:
    return json.dumps(facts, sort_keys=True).encode()
