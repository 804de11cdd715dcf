"""Returns free memory to the system.

Building an index takes several times what it leaves. Allocators keep what is freed for later, so
an executor would look, and be treated, as if it were still in use.
"""

import ctypes
from collections.abc import Callable
from functools import cache

import pyarrow as pa

FEWEST_ROWS = 16_384
"""Smaller indexes leave little behind, and the heap is locked meanwhile."""


def give_back_after(row_count: int) -> None:
    """Return what building an index over this number of rows left behind."""
    if row_count >= FEWEST_ROWS:
        give_back()


def give_back() -> None:
    """Return the free memory of this process to the system. Blocks, for some milliseconds."""
    pa.default_memory_pool().release_unused()
    _trim()(0)


@cache
def _trim() -> Callable[[int], object]:
    trim: Callable[[int], object] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim or (lambda _kept: 0)  # Only glibc has it.
