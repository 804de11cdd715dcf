"""Chunks that were just made, held until they are read or nobody comes for them."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field

from caraway_engine.rows.held import Chunk

_HELD_S = 60.0
"""How long after its last chunk was made. A version is read within moments of that."""


@dataclass(slots=True)
class _Made:
    chunks: list[Chunk] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None


class FreshChunks:
    """Holds chunks by the key that they were stored under. For one event loop, but for `clear`."""

    def __init__(self, held_s: float = _HELD_S) -> None:
        self._held_s = held_s
        self._made: dict[str, _Made] = {}

    def __len__(self) -> int:
        return sum(len(made.chunks) for made in self._made.values())

    def add(self, key: str, chunk: Chunk) -> None:
        made = self._made.setdefault(key, _Made())
        made.chunks.append(chunk)
        if made.timer is not None:
            made.timer.cancel()
        loop = asyncio.get_running_loop()
        made.timer = loop.call_later(self._held_s, self.let_go, (key,))

    def let_go(self, keys: Collection[str]) -> None:
        """Hold what lies under these keys no longer: somebody else does, or nobody wants it."""
        for key in keys:
            made = self._made.pop(key, None)
            if made is not None and made.timer is not None:
                made.timer.cancel()

    def clear(self) -> None:
        """Hold nothing: there is no room for it. For any thread."""
        # Timers are left to find nothing: they are for the thread of their loop.
        self._made = {}
