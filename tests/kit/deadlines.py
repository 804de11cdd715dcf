"""The only module that polls; all other waits use events or pipes."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


def until(look: Callable[[], T], what: str, seconds: float = 60.0, *, every_s: float = 0.02) -> T:
    """Look until the answer is true, and return it.

    Raises:
        AssertionError: it never was, in the time given.
    """
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}; last seen: {found!r}")
        time.sleep(every_s)
    return found


async def eventually(look: Callable[[], Awaitable[T]], what: str, seconds: float = 60.0) -> T:
    """Look until the answer is true, and return it, while the loop goes on.

    Raises:
        AssertionError: it never was, in the time given.
    """
    deadline = time.monotonic() + seconds
    while not (found := await look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}; last seen: {found!r}")
        await asyncio.sleep(0.02)
    return found
