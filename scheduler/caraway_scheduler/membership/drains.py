"""Executors that shall take no more work, as every scheduler reads it from the state store."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from caraway_core.errors import CarawayError
from caraway_core.ids import ExecutorId
from caraway_core.protocols.state import StateEntry, StateStore

logger = logging.getLogger(__name__)

DRAINS = "drains/"
SETTLED_AFTER_S = 3.0
"""By then every scheduler has read the wish, and a heartbeat has told what still runs."""
_FORGOTTEN_AFTER_S = 600.0
_ROUND_S = 5.0
_TRIES = 8


@dataclass(frozen=True, slots=True)
class _Wish:
    incarnation: str
    revision: int
    seen_at: float
    """When this scheduler first saw it."""


class Drains:
    """Keeps the wishes of operators. Each holds for one incarnation of an executor: one that comes
    back under the same name, as a pod of a StatefulSet does, works again."""

    def __init__(self, store: StateStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._wishes: dict[ExecutorId, _Wish] = {}
        self._absent_since: dict[ExecutorId, float] = {}
        self._is_away = False

    @property
    def wishes(self) -> Mapping[ExecutorId, str]:
        """The incarnation of each executor that shall drain."""
        return {executor_id: wish.incarnation for executor_id, wish in self._wishes.items()}

    def is_settled(self, executor_id: ExecutorId) -> bool:
        """Whether every scheduler knows of the wish by now."""
        wish = self._wishes.get(executor_id)
        return wish is not None and self._clock() - wish.seen_at >= SETTLED_AFTER_S

    async def ask(self, executor_id: ExecutorId, incarnation: str) -> None:
        """Write a wish; to ask again changes nothing.

        Raises:
            CarawayError: the state store does not take it.
        """
        value = json.dumps({"incarnation": incarnation}).encode()
        await self._write(executor_id, value)

    async def undo(self, executor_id: ExecutorId) -> None:
        """Take a wish back; nothing happens if there is none.

        Raises:
            CarawayError: the state store does not take it.
        """
        await self._write(executor_id, None)

    async def follow(self, registered: Mapping[ExecutorId, str]) -> None:
        """Read what is wished, and clear wishes whose executor has left; `registered` are the
        incarnations that live. While the store is away, what was read last holds."""
        try:
            async with asyncio.timeout(_ROUND_S):
                self._take_in(await self._store.scan(DRAINS))
                await self._clear(registered)
        except (CarawayError, TimeoutError) as exc:
            if not self._is_away:
                reason = getattr(exc, "message", f"no answer within {_ROUND_S:g} s")
                logger.warning("wishes to drain cannot be read", extra={"reason": reason})
            self._is_away = True
        else:
            self._is_away = False

    async def _write(self, executor_id: ExecutorId, value: bytes | None) -> None:
        key = DRAINS + executor_id
        for _ in range(_TRIES):
            entry = await self._store.get(key)
            if (entry.value if entry else None) == value:
                break
            expected = entry.revision if entry else None
            if await self._store.compare_and_set(key, value, expected=expected) is not None:
                break
        else:
            raise CarawayError(f"the wish to drain '{executor_id}' changed {_TRIES} times just now")
        self._take_in(await self._store.scan(DRAINS))

    def _take_in(self, entries: Sequence[StateEntry]) -> None:
        known, self._wishes = self._wishes, {}
        for entry in entries:
            executor_id = ExecutorId(entry.key.removeprefix(DRAINS))
            before = known.get(executor_id)
            if before is None or before.revision != entry.revision:
                before = _Wish(_incarnation(entry), entry.revision, self._clock())
            self._wishes[executor_id] = before

    async def _clear(self, registered: Mapping[ExecutorId, str]) -> None:
        now, absent = self._clock(), dict[ExecutorId, float]()
        for executor_id, wish in list(self._wishes.items()):
            found = registered.get(executor_id)
            if found == wish.incarnation:
                continue
            # Without one it may only be late, or this scheduler new.
            absent[executor_id] = self._absent_since.get(executor_id, now)
            if found is None and now - absent[executor_id] < _FORGOTTEN_AFTER_S:
                continue
            key = DRAINS + executor_id
            await self._store.compare_and_set(key, None, expected=wish.revision)
            if self._wishes.get(executor_id) != wish:
                continue  # Somebody asked or took it back meanwhile.
            del self._wishes[executor_id]
            logger.info("executor has left; its drain is over", extra={"executor_id": executor_id})
        self._absent_since = absent


def _incarnation(entry: StateEntry) -> str:
    try:
        return str(json.loads(entry.value)["incarnation"])
    except (ValueError, KeyError, TypeError):
        # Written by another version: it holds for nobody, and is cleared.
        return ""
