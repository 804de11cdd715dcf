"""Keeps newly made chunks in memory until they are read or time out."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field

from caraway_engine.rows.held import Chunk

_HELD_S = 60.0
"""Seconds after a version's last chunk was made. It is normally read within moments."""


@dataclass(slots=True)
class _Made:
    chunks: list[Chunk] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None


class FreshChunks:
    """Holds chunks by the key they were stored under. Not thread-safe, except `clear`."""

    def __init__(self, held_s: float = _HELD_S) -> None:
        self._held_s = held_s
        self._made: dict[str, _Made] = {}

    def __len__(self) -> int:
        return sum(len(made.chunks) for made in self._made.values())

    def add(self, key: str, chunk: Chunk) -> None:
        """Keep a chunk, and restart the timeout of its key."""
        made = self._made.setdefault(key, _Made())
        made.chunks.append(chunk)
        if made.timer is not None:
            made.timer.cancel()
        loop = asyncio.get_running_loop()
        made.timer = loop.call_later(self._held_s, self.let_go, (key,))

    def let_go(self, keys: Collection[str]) -> None:
        """Release the chunks of these keys: others reference them, or they are not needed."""
        for key in keys:
            made = self._made.pop(key, None)
            if made is not None and made.timer is not None:
                made.timer.cancel()

    def clear(self) -> None:
        """Release everything, because memory is needed. Thread-safe."""
        # Timers are left to find nothing, because only their loop's thread may cancel them.
        self._made = {}
