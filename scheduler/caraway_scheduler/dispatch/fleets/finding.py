"""Looks for executors without delaying heartbeats."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

from caraway_core.concurrency import tasks
from caraway_core.ids import ExecutorId

logger = logging.getLogger(__name__)
Found = TypeVar("Found")
Look = Callable[[set[ExecutorId]], Awaitable[Mapping[ExecutorId, Found]]]
"""Returns the executors that are not known yet."""
_FIND_S = 0.3
"""Below ANSWER_S, so that known executors are asked even while nothing answers a look."""
CAUSE_LENGTH = 200


class Finding(Generic[Found]):
    """Looks again and again, one look at a time; a slow one goes on in the background."""

    def __init__(self, look: Look[Found], warning: str) -> None:
        """Set how to look, and the text that is logged when looks begin to fail."""
        self._look = look
        self._warning = warning
        self._looking: asyncio.Task[Mapping[ExecutorId, Found]] | None = None
        self._is_blind = False

    async def found(self, known: set[ExecutorId]) -> Mapping[ExecutorId, Found]:
        """Return what the current look has found; nothing if it takes longer, or fails."""
        if self._looking is None:
            self._looking = tasks.begin(self._begun(known))
        looking = self._looking
        done, _ = await asyncio.wait((looking,), timeout=_FIND_S)
        if not done or looking is not self._looking:
            return {}
        self._looking = None
        if (exc := looking.exception()) is not None:
            if not self._is_blind:
                cause = str(exc).split("\n")[0][:CAUSE_LENGTH]
                logger.warning(self._warning, extra={"cause": cause})
            self._is_blind = True
            return {}
        self._is_blind = False
        return looking.result()

    async def leave(self, within_s: float) -> Mapping[ExecutorId, Found]:
        """Wait for the search under way, and return the executors that were not asked for."""
        looking, self._looking = self._looking, None
        if looking is None:
            return {}
        done, _ = await asyncio.wait((looking,), timeout=within_s)
        if not done or looking.cancelled() or looking.exception() is not None:
            return {}
        return looking.result()

    async def _begun(self, executor_ids: set[ExecutorId]) -> Mapping[ExecutorId, Found]:
        return await self._look(executor_ids)
