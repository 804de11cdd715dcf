"""Chooses the executor that holds the tables in memory: one for all, until it is lost."""

import hashlib
from collections.abc import Callable, Sequence

from caraway_core.errors import CarawayError
from caraway_core.ids import ExecutorId
from caraway_core.protocols.state import StateStore
from caraway_scheduler.dispatch.tasks.placing import none_ready

KEY = "placement/memory"
_TRIES = 8


class MemoryOwner:
    """Keeps the choice in the state store, so that every scheduler makes the same one."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    async def find(self, ready: Callable[[], Sequence[ExecutorId]]) -> ExecutorId:
        """Return the owner, or choose another if it is lost; its tables then start empty.

        Raises:
            OverloadedError: no executor is ready.
        """
        for _ in range(_TRIES):
            executors = ready()
            if not executors:
                raise none_ready()
            entry = await self._store.get(KEY)
            if entry is not None:
                owner = ExecutorId(entry.value.decode())
                if owner in executors:
                    return owner
            chosen = min(executors, key=lambda each: hashlib.sha256(each.encode()).digest())
            written = await self._store.compare_and_set(
                KEY, chosen.encode(), expected=entry.revision if entry else None
            )
            if written is not None:
                return chosen
        raise CarawayError(
            f"the owner of `memory:` datasets changed {_TRIES} times at once; try again"
        )
