"""The state store of a process: opened, waited for, and known again."""

import asyncio
import logging
import time
import uuid
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.errors import StateAwayError
from caraway_core.loading import registry
from caraway_core.protocols.state import StateStore

logger = logging.getLogger(__name__)
STATE_FILE = "state.db"
_IDENTITY = "identity"
_STATE_S = 60.0
_DELAYS = Delays(0.5, 2.0)


async def opened(url: str | None, path: Path, stack: AsyncExitStack) -> StateStore:
    """Open the state store of a URL, or a file where there is none.

    A server that is away may be starting as well, so this waits for it.

    Raises:
        CarawayError: it cannot be reached for long, or would lose what it acknowledged.
    """
    kind, place = ("redis", url) if url else ("sqlite", path)
    # Any: each kind of store takes its own sort of place.
    store_class: Any = registry.STATE_STORES.load(kind)
    store: StateStore = store_class(place)
    stack.push_async_callback(store.aclose)
    for warning in await check(store):
        logger.warning("state store", extra={"warning": warning})
    return store


async def check(
    store: StateStore, patience_s: float = _STATE_S, delays: Delays = _DELAYS
) -> Sequence[str]:
    """Return the warnings of a store, once it answers.

    Raises:
        CarawayError: it does not in that time, or cannot be used.
    """
    deadline, again = time.monotonic() + patience_s, Backoff(delays)
    while True:
        try:
            return await store.check()
        except StateAwayError as exc:
            is_first, delay_s = not again.failures, again.failed()
            if time.monotonic() + delay_s > deadline:
                raise
            if is_first:
                fields = {"at_most_s": patience_s, "cause": exc.message}
                logger.warning("waits for the state store", extra=fields)
        await asyncio.sleep(delay_s)


async def identity(store: StateStore) -> str:
    """Return the name that a state store has had since it was first used."""
    while (entry := await store.get(_IDENTITY)) is None:
        await store.compare_and_set(_IDENTITY, uuid.uuid4().hex[:12].encode(), expected=None)
    return entry.value.decode()
