"""Ends a process in bounded time, even if third-party libraries block its threads.

Ray waits up to two minutes for a lost head, in calls that cannot be interrupted. Python waits for
those threads before it exits.
"""

import asyncio
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine

from caraway_core.concurrency import tasks
from caraway_core.settings import Address

logger = logging.getLogger(__name__)
_CHECK_S = 0.5
_GONE_S = 3.0
_LAST_S = 1.0
_CONNECT_S = 1.0


def bound(
    within_s: float,
    head: Address | None = None,
    *,
    code: int = 0,
    gone_s: float = _GONE_S,
    last_s: float = _LAST_S,
) -> None:
    """Exit the process after `within_s`, unless it has exited by then.

    If a head is given, exit sooner once the head no longer responds: Ray would wait for it.
    """

    def end() -> None:
        try:
            _wait(within_s, head, gone_s, last_s)
            logger.warning("the process did not end by itself", extra={"within_s": within_s})
            logging.shutdown()
            sys.stdout.flush()
        finally:
            os._exit(code)  # Nothing else ends the process if this thread fails.

    threading.Thread(target=end, name="bounded-end", daemon=True).start()


def _wait(within_s: float, head: Address | None, gone_s: float, last_s: float) -> None:
    """Wait `within_s`, or until `last_s` after the head was found gone."""
    answered = time.monotonic()
    deadline = answered + within_s
    while (now := time.monotonic()) < deadline:
        if head is not None and listens(head):
            answered = now
        elif head is not None and now - answered >= gone_s:
            head, deadline = None, min(deadline, now + last_s)
        time.sleep(max(0.0, min(_CHECK_S, deadline - time.monotonic())))


async def unless_gone(
    work: Coroutine[object, object, object],
    head: Address,
    answers: Callable[[Address], bool] | None = None,
    for_s: float = _GONE_S,
) -> bool:
    """Await the work, but stop once the cluster's head is gone; return whether the work finished.

    If the cluster is being deleted, nobody needs the work. If the head is only being replaced, the
    unfinished work runs again elsewhere.
    """
    working = tasks.begin(work)
    probe = answers or listens
    last = time.monotonic()
    try:
        while time.monotonic() - last < for_s:
            await asyncio.wait((working,), timeout=_CHECK_S)
            if working.done():
                await working
                return True
            if await asyncio.to_thread(probe, head):
                last = time.monotonic()
        logger.warning("the head is gone: nothing is waited for", extra={"head": str(head)})
        return False
    finally:
        working.cancel()


def listens(address: Address) -> bool:
    """Return whether a server accepts connections at the address; resolves the name each time."""
    try:
        socket.create_connection((address.host, address.port), _CONNECT_S).close()
    except OSError:
        return False
    return True
