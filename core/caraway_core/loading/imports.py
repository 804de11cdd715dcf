"""Imports what stays until the end of a process."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the garbage collector from what is imported in the block, now and later.

    A thousand modules make half a million objects that are never freed. To look for garbage among
    them takes a fifth of the time of their import, and later delays requests.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
