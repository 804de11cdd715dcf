"""Stores drain requests for executors in the state store, where all schedulers read them."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError
from caraway_core.ids import ExecutorId
from caraway_core.protocols.state import StateEntry, StateStore

logger = logging.getLogger(__name__)

DRAINS = "drains/"
SETTLED_AFTER_S = 3.0
"""By then every scheduler has read the request, and a heartbeat has reported the running tasks."""
_FORGOTTEN_AFTER_S = 600.0
_ROUND_S = 5.0
_TRIES = 8


@dataclass(frozen=True, slots=True)
class _Wish:
    """A request to drain one incarnation of an executor."""

    incarnation: str
    revision: int
    seen_at: float
    """When this scheduler first saw the request."""


class Drains:
    """The drain requests of operators.

    Each applies to one incarnation of an executor. An executor that returns under the same name,
    such as a pod of a StatefulSet, works again.
    """

    def __init__(self, store: StateStore, clock: SecondsClock) -> None:
        self._store = store
        self._clock = clock
        self._wishes: dict[ExecutorId, _Wish] = {}
        self._absent_since: dict[ExecutorId, float] = {}
        self._is_away = False

    @property
    def wishes(self) -> Mapping[ExecutorId, str]:
        """The incarnations that should drain, by executor."""
        return {executor_id: wish.incarnation for executor_id, wish in self._wishes.items()}

    def is_settled(self, executor_id: ExecutorId) -> bool:
        """Return whether every scheduler knows of the request by now."""
        wish = self._wishes.get(executor_id)
        return wish is not None and self._clock() - wish.seen_at >= SETTLED_AFTER_S

    async def ask(self, executor_id: ExecutorId, incarnation: str) -> None:
        """Write a drain request; repeating it changes nothing.

        Raises:
            CarawayError: the state store cannot be written.
        """
        value = json.dumps({"incarnation": incarnation}).encode()
        await self._write(executor_id, value)

    async def undo(self, executor_id: ExecutorId) -> None:
        """Delete a drain request; does nothing if there is none.

        Raises:
            CarawayError: the state store cannot be written.
        """
        await self._write(executor_id, None)

    async def follow(self, registered: Mapping[ExecutorId, str]) -> None:
        """Read the requests, and delete those whose executor has left.

        `registered` has the live incarnations. While the store is away, the last requests stay
        valid.
        """
        try:
            async with asyncio.timeout(_ROUND_S):
                self._take_in(await self._store.scan(DRAINS))
                await self._clear(registered)
        except (CarawayError, TimeoutError) as exc:
            if not self._is_away:
                reason = getattr(exc, "message", f"no answer within {_ROUND_S:g} s")
                logger.warning("drain requests cannot be read", extra={"reason": reason})
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
            raise CarawayError(
                f"the drain request of '{executor_id}' changed {_TRIES} times at once; try again"
            )
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
            # An unregistered executor may only be late, or this scheduler may be new.
            absent[executor_id] = self._absent_since.get(executor_id, now)
            if found is None and now - absent[executor_id] < _FORGOTTEN_AFTER_S:
                continue
            key = DRAINS + executor_id
            await self._store.compare_and_set(key, None, expected=wish.revision)
            if self._wishes.get(executor_id) != wish:
                continue  # The request was changed in the meantime.
            del self._wishes[executor_id]
            logger.info("executor has left; its drain is over", extra={"executor_id": executor_id})
        self._absent_since = absent


def _incarnation(entry: StateEntry) -> str:
    try:
        return str(json.loads(entry.value)["incarnation"])
    except (ValueError, KeyError, TypeError):
        # Another version wrote it: it applies to no executor, and is deleted.
        return ""
