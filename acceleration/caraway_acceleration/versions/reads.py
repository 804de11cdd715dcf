"""Tracks which superseded chunks long statements still read, so that nobody deletes them.

  accelerated-reading/OWNER   the chunk keys that statements of one process read; expires

Superseded chunks are kept for KEPT in any case. A statement that has run for half of that is
recorded repeatedly until it ends. Every scheduler checks these entries before it deletes a chunk.
The entry of a dead scheduler expires after KEPT.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from urllib.parse import quote

from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_core.protocols.state import StateStore
from caraway_core.statements import ActiveStatement
from caraway_core.tables import TableSpec
from caraway_scheduler.coordination.freshness import Mentions

logger = logging.getLogger(__name__)
KEPT = timedelta(seconds=120)
"""The time for which a superseded version is kept: statements may have just started with it."""
MOST_KEYS = 50_000
"""The maximum number of keys of one process, oldest statements first: about 3 MB."""
_READING = "accelerated-reading/"
_TRIES = 5


def look_s() -> float:
    """Return the interval of recording running statements and of looking for old chunks."""
    return KEPT.total_seconds() / 8


class Reads:
    """The chunks that statements of all schedulers read.

    Methods raise StateAwayError while the state store is away.
    """

    def __init__(self, store: StateStore, owner: str) -> None:
        self._store = store
        self._key = _READING + quote(owner, safe="")
        self._revision: int | None = None

    async def keys(self) -> frozenset[str]:
        """Return the keys that any scheduler reported as read."""
        entries = await self._store.scan(_READING)
        return frozenset(key for entry in entries for key in entry.value.decode().split("\n"))

    async def write(self, keys: Sequence[str]) -> None:
        """Report the keys that this process reads, replacing its previous report."""
        if not keys and self._revision is None:
            return
        value = "\n".join(keys[:MOST_KEYS]).encode() or None
        ttl_s = KEPT.total_seconds() if value else None
        for _ in range(_TRIES):
            written = await self._store.compare_and_set(
                self._key, value, expected=self._revision, ttl_s=ttl_s
            )
            if written is not None:
                self._revision = written if value else None
                return
            # The entry expired, or the answer to an earlier attempt was lost.
            entry = await self._store.get(self._key)
            self._revision = entry.revision if entry is not None else None
            if value is None and entry is None:
                return
        raise CarawayError("the chunks that statements read could not be recorded; this is retried")

    async def run(self, under_way: Callable[[], Collection[ActiveStatement]]) -> None:
        """Report the chunks that long statements read, until cancelled."""
        while True:
            await asyncio.sleep(look_s())
            try:
                keys = keys_of(_long(under_way(), asyncio.get_running_loop().time()))
                if len(keys) > MOST_KEYS:
                    logger.warning("running statements read too many superseded chunks to keep all")
                await self.write(keys)
            except CarawayError as exc:
                logger.warning(
                    "recording of chunks in use failed and is retried", extra={"cause": exc.message}
                )


def _long(statements: Iterable[ActiveStatement], now_s: float) -> list[ActiveStatement]:
    before_s = now_s - KEPT.total_seconds() / 2
    active_statements = [each for each in statements if each.since_s <= before_s]
    return sorted(active_statements, key=lambda each: each.since_s)


def keys_of(statements: Iterable[ActiveStatement]) -> list[str]:
    """Return the keys of all chunks that the statements may read, without duplicates, in order."""
    mentions: dict[int, Mentions] = {}
    keys: dict[str, None] = {}
    for statement in statements:
        for tables in statement.catalogs:
            known = mentions.get(id(tables)) or mentions.setdefault(id(tables), _mentions(tables))
            for name in sorted(known.tables_of(statement.sql)):
                table = tables[name].version
                if table is not None:
                    log = statement.logs.get(table.key, ())
                    keys.update(dict.fromkeys(each.key or table.key for each in table.chunks))
                    keys.update(dict.fromkeys(each.chunk.key for each in log))
    return list(keys)


def _mentions(tables: Mapping[TableName, TableSpec]) -> Mentions:
    stored = [name for name, each in tables.items() if each.version is not None]
    views = {name: each.query for name, each in tables.items() if each.query is not None}
    return Mentions(stored, views)
