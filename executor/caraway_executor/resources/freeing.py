"""Returns free memory to the system.

Building an index takes several times what it leaves, and a large statement leaves nothing. But
allocators keep what is freed for later.
"""

import ctypes
from collections.abc import Callable
from functools import cache

import pyarrow as pa

from caraway_engine.execution import threads

FEWEST_ROWS = 16_384
"""Smaller indexes leave little behind, and the heap is locked meanwhile."""
CALM_S = 12.0
"""The idle time before a process returns memory, which the next statement would need again.
Threads of the engine that read files end after 10 s without work, and leave what they have."""

WORTH_BYTES = 64 * 1024 * 1024
"""The growth from which memory is returned. With less to win, the time of a core is worth more."""


def give_back_after(row_count: int) -> None:
    """Return what building an index over this number of rows left behind."""
    if row_count >= FEWEST_ROWS:
        _trim_heaps()


def give_back() -> None:
    """Return the free memory of this process to the system. Blocks, for some 0.4 s."""
    threads.give_back()
    _trim_heaps()


def _trim_heaps() -> None:
    pa.default_memory_pool().release_unused()
    _trim()(0)


@cache
def _trim() -> Callable[[int], object]:
    trim: Callable[[int], object] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim or (lambda _kept: 0)  # Only glibc has it.
