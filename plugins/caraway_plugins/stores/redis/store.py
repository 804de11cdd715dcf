"""A state store in a Redis or Valkey server, which several hosts can share."""

import logging
import socket
import sys
import weakref
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError, StateAwayError
from caraway_core.protocols.state import StateEntry
from caraway_plugins.stores.redis import address, durability, errors
from caraway_plugins.stores.redis.address import ServerAddress
from caraway_plugins.stores.redis.lane import RedisLane
from caraway_plugins.stores.watching import Beginnings, ChangePage, StateWatcher

logger = logging.getLogger(__name__)

POLL_S = 0.25
ANSWER_S = 3.0
FORMAT_VERSION = 1
_PAGE_ENTRIES = 256
_CONNECTIONS = 3
_TCP: Mapping[str, Any] = {
    "socket_keepalive": True,
    # An idle connection to a host that vanished is closed after 8 s, also if something was sent.
    "socket_keepalive_options": {
        socket.TCP_KEEPIDLE: 4,
        socket.TCP_KEEPINTVL: 2,
        socket.TCP_KEEPCNT: 2,
        socket.TCP_USER_TIMEOUT: 8000,
    }
    if sys.platform == "linux"
    else {},
}


class RedisStateStore:
    """Keeps state in the server of a URL.

    Construction does no I/O; `check` verifies the server at startup. Writes and reads have separate
    connections. Expiry uses the server's clock, so the clocks of schedulers need not agree.

    Raises:
        CarawayError: the URL is invalid.
    """

    def __init__(
        self, url: str, clock: SecondsClock | None = None, *, poll_s: float = POLL_S
    ) -> None:
        self._address = address.parse(url)
        self._poll_s = poll_s
        self._client = _connect(self._address)
        self._writes = RedisLane(self._client, self._address, clock)
        self._reads = RedisLane(self._client, self._address, clock)
        # Weak references: a watcher that is no longer iterated need not be woken.
        self._watchers: weakref.WeakSet[StateWatcher] = weakref.WeakSet()
        self._begun = Beginnings()

    async def check(self) -> Sequence[str]:
        """Check that the server keeps acknowledged writes; return warnings.

        Raises:
            CarawayError: the server cannot be reached, has state in another format, or may lose
                acknowledged writes and the URL does not have `durability=any`.
        """
        found = int(await self._writes.run_call("format", FORMAT_VERSION))
        if found != FORMAT_VERSION:
            raise CarawayError(
                f"state store {self._address.name}: format {found} is not the format "
                f"{FORMAT_VERSION} of this version of Caraway; run the version that wrote it, or "
                "give another ?prefix= in the URL"
            )
        try:
            return await durability.warnings(self._client, self._address)
        except (RedisError, OSError) as exc:
            raise errors.explained(self._address.name, exc) from exc

    async def get(self, key: str) -> StateEntry | None:
        """Return the live entry of the key, or None."""
        await self._begun.wait()
        answer = await self._reads.run_call("get", key)
        return StateEntry(key, answer[0], answer[1]) if answer else None

    async def revisions(self, keys: Sequence[str]) -> Sequence[int]:
        """Return the revision of each key's live entry, or 0."""
        await self._begun.wait()
        found: Sequence[int] = await self._reads.run_call("revisions", *keys)
        return found

    async def scan(self, prefix: str) -> Sequence[StateEntry]:
        """Return the live entries with the prefix, in key order."""
        await self._begun.wait()
        return [_entry(row) for row in await self._reads.run_call("scan", prefix, _end_of(prefix))]

    async def compare_and_set(
        self, key: str, value: bytes | None, *, expected: int | None, ttl_s: float | None = None
    ) -> int | None:
        """Write or delete an entry if its revision is the expected one; return the new revision.

        Raises:
            ValueError: the value is empty, because empty values stand for deletions.
        """
        if value == b"":
            raise ValueError(f"key '{key}': an empty value stands for a deletion; write None")
        revision: int = await self._writes.run_call(
            "compare_and_set",
            key,
            value or b"",
            "absent" if expected is None else expected,
            "" if ttl_s is None else ttl_s,
        )
        if not revision:
            return None
        self._wake()
        return revision

    async def append(self, log: str, record: bytes) -> int:
        """Add a record to the end of the log and return its offset."""
        offset: int = await self._writes.run_call("append", log, record)
        return offset

    async def read_log(self, log: str, start: int, limit: int) -> Sequence[bytes]:
        """Return up to `limit` records, starting at the offset."""
        if limit <= 0:
            return []
        records: Sequence[bytes] = await self._reads.run_call(
            "read_log", log, start, start + limit - 1
        )
        return records

    def watch(self, prefix: str) -> StateWatcher:
        """Yield writes after this call, also those of other stores, and expired entries.

        Changes are found by revision, so none is missed while the server is away.

        Raises:
            CarawayError: while iterating, if the server stays away, or if the watcher paused for so
                long that deletions are forgotten.
        """
        # The start revision goes through the queue of writes, so later writes of the caller come
        # after it.
        watcher = StateWatcher(prefix, self, self._writes.submit("revision"), self._poll_s)
        self._watchers.add(watcher)
        self._begun.add(watcher)
        return watcher

    async def aclose(self) -> None:
        """Finish the queued calls and disconnect; watchers end."""
        # Also if the caller is cancelled meanwhile: the connections are closed.
        async with AsyncExitStack() as closing:
            closing.push_async_callback(self._client.aclose, close_connection_pool=True)
            closing.callback(self._wake)
            closing.push_async_callback(self._writes.aclose)
            closing.push_async_callback(self._reads.aclose)

    async def read_start(self, submitted: Any) -> int:
        """Return the revision that a watch submitted to be read."""
        revision: int = await self._writes.outcome(submitted)
        return revision

    async def read_revision(self) -> int:
        """Return the revision of the last write."""
        revision: int = await self._reads.run_call("revision")
        return revision

    async def read_changes(self, prefix: str, after: int) -> ChangePage:
        """Return the changes after a revision; it waits while the server is away."""
        while True:
            try:
                answer = await self._reads.run_call("changes", prefix, after, _PAGE_ENTRIES)
            except StateAwayError as exc:
                # The lane has already waited between its attempts; a watcher outlasts an outage.
                logger.warning("the state store is away; the watch will resume",
                               extra={"prefix": prefix, "reason": exc.message})  # fmt: skip
            else:
                upto, forgotten, rows = answer
                return ChangePage([_entry(row) for row in rows], upto, forgotten)

    def _wake(self) -> None:
        for watcher in self._watchers:
            watcher.wake()


def _connect(server: ServerAddress) -> "Redis":
    kinds = {"unix": UnixDomainSocketConnection, "rediss": SSLConnection}
    kind = kinds.get(server.name.partition(":")[0], Connection)
    pool = BlockingConnectionPool(
        max_connections=_CONNECTIONS,
        timeout=ANSWER_S,
        connection_class=kind,
        socket_timeout=ANSWER_S,
        socket_connect_timeout=ANSWER_S,
        **({} if kind is UnixDomainSocketConnection else _TCP),
        # Lanes retry themselves; a retry by the client would apply a write twice.
        retry=Retry(NoBackoff(), 0),
        **server.connection,
    )
    return Redis(connection_pool=pool)


def _end_of(prefix: str) -> bytes:
    """Return the first text after all texts with the prefix; empty if there is none."""
    low = prefix.encode()
    # No byte of UTF-8 is 0xFF, so the last byte can always be incremented.
    return low[:-1] + bytes([low[-1] + 1]) if low else b""


def _entry(row: Sequence[Any]) -> StateEntry:
    key, value, revision = row
    return StateEntry(key.decode(), value, revision)
