"""Responses that are kept for a while, so that the next request can go on from them."""

import logging
import re
from dataclasses import dataclass

import orjson

from caraway_ai import json_values
from caraway_ai.protocols import JsonObject
from caraway_core.errors import CarawayError
from caraway_core.ids import PrincipalId
from caraway_core.protocols.state import StateStore

logger = logging.getLogger(__name__)
KEPT_S = 24 * 3600.0
MOST_BYTES = 4 * 1024 * 1024
_ID = re.compile(r"resp_[0-9a-f]{48}")


@dataclass(frozen=True, slots=True)
class KeptResponse:
    """A response, and the items of the whole conversation, which ends with it."""

    response: JsonObject
    items: list[JsonObject]


class Conversations:
    """Keeps responses in the state store; each is found by the principal that asked for it."""

    def __init__(self, state: StateStore, kept_s: float = KEPT_S) -> None:
        self._state = state
        self._kept_s = kept_s

    async def keep(self, principal: PrincipalId, kept: KeptResponse) -> bool:
        """Keep a response; return whether it is kept. The answer itself is never lost for it."""
        value = json_values.dumped([kept.response, kept.items])
        if len(value) > MOST_BYTES:
            logger.warning("response not kept: it is too large", extra={"bytes": len(value)})
            return False
        key = _key(principal, kept.response["id"])
        try:
            written = await self._state.compare_and_set(
                key, value, expected=None, ttl_s=self._kept_s
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
        return None if entry is None else KeptResponse(*orjson.loads(entry.value))

    async def forget(self, principal: PrincipalId, id_: str) -> bool:
        """Delete a response; return whether there was one.

        Raises:
            StateAwayError: the state store does not respond.
        """
        if not _ID.fullmatch(id_):
            return False
        key = _key(principal, id_)
        entry = await self._state.get(key)
        if entry is None:
            return False
        return await self._state.compare_and_set(key, None, expected=entry.revision) is not None


def _key(principal: PrincipalId, id_: str) -> str:
    return f"responses/{principal}/{id_}"
