"""Responses that are kept for a while, so that the next request can go on from them."""

import asyncio
import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from caraway_ai import json_values
from caraway_ai.protocols import JsonObject
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.concurrency.quotas import Quota, QuotaLimits
from caraway_core.errors import CarawayError, UnavailableError
from caraway_core.ids import PrincipalId
from caraway_core.protocols.state import StateStore

logger = logging.getLogger(__name__)
KEPT_S = 24 * 3600.0
MOST_BYTES = 4 * 1024 * 1024
LIMITS = QuotaLimits(most_each=1_000, most_bytes_each=64 * 1024 * 1024)
_ID = re.compile(r"resp_[0-9a-f]{48}")
_TRIES = 16


@dataclass(frozen=True, slots=True)
class KeptResponse:
    """A response, and the items of the whole conversation, which ends with it."""

    response: JsonObject
    items: list[JsonObject]


class Conversations:
    """Keeps responses in the state store; only the principal that requested a response finds it.

    A principal above its limits loses its oldest responses. One entry of each principal lists its
    responses, so that all schedulers agree.
    """

    def __init__(
        self,
        state: StateStore,
        limits: QuotaLimits = LIMITS,
        kept_s: float = KEPT_S,
        clock: SecondsClock = time.time,
    ) -> None:
        self.quota: Quota[tuple[PrincipalId, str]] = Quota(
            "stored responses", QuotaLimits(), kept_s=kept_s, clock=clock
        )
        """Counts the responses that this process has kept."""
        self._state = state
        self._limits = limits
        self._kept_s = kept_s
        self._clock = clock
        self._listing = asyncio.Lock()

    async def keep(self, principal: PrincipalId, kept: KeptResponse) -> bool:
        """Keep a response; return whether it is kept. The answer itself is never lost for it."""
        value = json_values.dumped([kept.response, kept.items])
        most = min(MOST_BYTES, self._limits.most_bytes_each or MOST_BYTES)
        if len(value) > most:
            logger.warning("response not kept: it is too large", extra={"bytes": len(value)})
            return False
        id_ = kept.response["id"]
        try:
            # Listed first: a response that is kept without being listed would never be removed.
            for gone in await self._listed(principal, id_, len(value)):
                await self._delete(principal, gone)
            written = await self._state.compare_and_set(
                _key(principal, id_), value, expected=None, ttl_s=self._kept_s
            )
        except CarawayError as exc:
            logger.warning("response not kept", extra={"reason": exc.message})
            return False
        return written is not None

    async def find(self, principal: PrincipalId, id_: str) -> KeptResponse | None:
        """Return a response of a principal, if it is kept.

        Raises:
            StateAwayError: the state store does not respond.
        """
        if not _ID.fullmatch(id_):
            return None
        entry = await self._state.get(_key(principal, id_))
        return None if entry is None else KeptResponse(*orjson.loads(entry.value)[:2])

    async def forget(self, principal: PrincipalId, id_: str) -> bool:
        """Delete a response; return whether there was one.

        Raises:
            StateAwayError: the state store does not respond.
        """
        if not _ID.fullmatch(id_) or not await self._delete(principal, id_):
            return False
        await self._listed(principal, id_, None)
        return True

    async def _delete(self, principal: PrincipalId, id_: str) -> bool:
        self.quota.drop((principal, id_))
        key = _key(principal, id_)
        entry = await self._state.get(key)
        if entry is None:
            return False
        return await self._state.compare_and_set(key, None, expected=entry.revision) is not None

    async def _listed(
        self, principal: PrincipalId, id_: str, size_bytes: int | None
    ) -> Sequence[str]:
        """List a response, or strike it out without a size; return those that have to go for it.

        Raises:
            CarawayError: the list cannot be written.
        """
        key = _list_key(principal)
        async with self._listing:
            for _ in range(_TRIES):
                entry = await self._state.get(key)
                now = self._clock()
                listed = [] if entry is None else orjson.loads(entry.value)
                left = [each for each in listed if each[0] != id_ and each[2] > now - self._kept_s]
                gone: Sequence[str] = ()
                if size_bytes is not None:
                    gone = self._surplus(principal, left, size_bytes)
                    left = [*left[len(gone) :], [id_, size_bytes, now]]
                value = orjson.dumps(left)
                expected = None if entry is None else entry.revision
                if await self._state.compare_and_set(
                    key, value, expected=expected, ttl_s=self._kept_s
                ):
                    self._count(principal, id_, size_bytes, len(gone))
                    return gone
        raise UnavailableError("the list of stored responses changes too often")

    def _surplus(
        self, principal: PrincipalId, listed: Sequence[Sequence[Any]], size_bytes: int
    ) -> Sequence[str]:
        quota: Quota[str] = Quota("stored responses", self._limits)
        gone = [old for id_, size, *_ in listed for old in quota.add(principal, id_, size)]
        return gone + quota.add(principal, "", size_bytes)

    def _count(
        self, principal: PrincipalId, id_: str, size_bytes: int | None, evictions: int
    ) -> None:
        self.quota.drop_idle()
        self.quota.evictions += evictions
        if size_bytes is not None:
            self.quota.add(principal, (principal, id_), size_bytes)


def _key(principal: PrincipalId, id_: str) -> str:
    return f"responses/{principal}/{id_}"


def _list_key(principal: PrincipalId) -> str:
    return f"response-lists/{principal}"
