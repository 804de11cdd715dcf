"""What is done to a dataset between refreshes: logs become part of their base, old rows go."""

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from caraway_core import tasks
from caraway_core.backoff import Backoff, Delays
from caraway_core.changes import Log, LogEntry
from caraway_core.errors import CarawayError
from caraway_core.protocols.results import ResultStore
from caraway_scheduler.acceleration.recipes.recipes import Recipe
from caraway_scheduler.acceleration.upkeep import logs
from caraway_scheduler.acceleration.versions import making
from caraway_scheduler.acceleration.versions.head import CurrentVersion, MovedError
from caraway_scheduler.acceleration.versions.version import DatasetVersion, VersionPart
from caraway_scheduler.acceleration.versions.versions import HeldVersion

logger = logging.getLogger(__name__)
LEAST_LOGGED = 50_000
MOST_LOGGED = 200_000
"""A log is made part of its base when it is a twentieth of it, but within these bounds."""
_SHARE = 20
_UPKEEP = "/upkeep"
_TRIES = 16
_DELAYS = Delays(10.0, 60.0, jitter=0.2)


class Upkeep:
    """One for each accelerated dataset and scheduler; one of the schedulers works at a time."""

    def __init__(
        self,
        head: CurrentVersion,
        recipe: Recipe,
        results: ResultStore,
        every_s: float | None = None,
    ) -> None:
        self._head = head
        self._recipe = recipe
        self._results = results
        self._every_s = every_s
        self._news = asyncio.Event()
        self._claims = {work: head.claim(work) for work in ("", _UPKEEP)}
        self.compactions = 0

    def news(self) -> None:
        """Changes were logged."""
        self._news.set()

    async def run(self) -> None:
        """Work until cancelled."""
        loop = asyncio.get_running_loop()
        looked_s, again = loop.time(), Backoff(_DELAYS)
        while True:
            # News may come all the time; they do not put off the look for old rows.
            due_s = None if self._every_s is None else looked_s + self._every_s
            try:
                async with asyncio.timeout_at(due_s):
                    await self._news.wait()
            except TimeoutError:
                pass
            self._news.clear()
            try:
                if due_s is not None and loop.time() >= due_s:
                    await self._trim()
                    looked_s = loop.time()
                await self._gather()
                await self._compact()
                again.succeeded()
            except CarawayError as exc:
                extra = {"dataset": self._head.name, "cause": exc.message}
                logger.warning("the upkeep of a dataset is put off", extra=extra)
                await asyncio.sleep(again.failed())

    async def _trim(self) -> None:
        """Write the dataset anew if it holds rows that are too old."""
        head = self._head
        async with self._claims[""].held() as is_mine:
            held = await self._shown() if is_mine else None
            if held is None:
                return
            counting = self._recipe.expired(held.version.schema, head.clock())
            if counting is None or not await head.maker.number(counting):
                return
            # While another scheduler gathers entries, or has a compaction.
            await self._claims[_UPKEEP].wait()
            async with self._claims[_UPKEEP].held():
                held = await self._shown()
                if held is not None:
                    await self._rewrite(held.version)

    async def _gather(self) -> None:
        """Make one entry of many small ones, which cost every statement that reads them.

        Only whoever has the claim does: a compaction on another scheduler would be in vain if
        entries that it has read became others.
        """
        held = self._head.ours
        if held is None or not _crumbs(held.version):
            return
        async with self._claims[_UPKEEP].held() as is_mine:
            if is_mine:
                await self._join()

    async def _gather_after(self, before: DatasetVersion) -> None:
        """Gather entries that come after those of a version that is being rewritten."""
        while True:
            await self._news.wait()
            self._news.clear()
            with suppress(CarawayError):
                await self._join(len(before.read_log))

    async def _join(self, past: int = 0) -> None:
        """Replace the last entries of a log by one, but none of the first `past`."""
        head = self._head
        if head.ours is None or not _crumbs(head.ours.version, past):
            return
        async with head.moving:
            held = await head.look()
            count = _crumbs(held.version, past) if held else 0
            if held is None or not count:
                return
            crumbs = held.version.log[-count:]
            entry = await self._write(await logs.read(self._results, crumbs))
            for _ in range(_TRIES):
                following = _joined(held.version, crumbs, entry) if held else None
                if held is None or following is None:
                    return
                try:
                    await head.flip(await head.loaded(head.next(held, **following)))
                except MovedError:
                    held = await head.look()
                else:
                    return await head.show()

    async def _compact(self) -> None:
        """Make a log part of its base, while changes go on."""
        head = self._head
        if head.ours is None or not _is_due(head.ours.version):
            return
        async with self._claims[_UPKEEP].held() as is_mine:
            held = await self._shown() if is_mine else None
            if held is None or not _is_due(held.version):
                return
            began = time.perf_counter()
            if not await self._rewrite(held.version):
                return
            self.compactions += 1
            extra = {
                "dataset": head.name,
                "rows": held.version.log_rows,
                "elapsed_ms": round((time.perf_counter() - began) * 1000),
            }
            logger.info("changes are part of their base now", extra=extra)

    async def _shown(self) -> HeldVersion | None:
        """Have readers see the version that stands, and return it.

        A statement reads what readers see. If that were older than the version, the rows it
        stores would lack the changes between both.
        """
        head = self._head
        async with head.moving:
            held = await head.look()
            await head.show()
        return held

    async def _rewrite(self, before: DatasetVersion) -> bool:
        """Write a base anew with what statements read of its log, while changes go on."""
        gathering = tasks.begin(self._gather_after(before))
        try:
            return await self._rewritten(before)
        finally:
            gathering.cancel()
            self._news.set()  # What it took may not have been looked at.

    async def _rewritten(self, before: DatasetVersion) -> bool:
        head = self._head
        sql = self._recipe.rewritten(before.schema, head.clock())
        read = {before.key: before.read_log}
        part = await head.make(sql, lambda _: None, before.cut, read)
        kept = await self._kept(before)
        following = replace(before, parts=(part,), log=kept, pending=0)
        await head.load(following)  # Most of the work, before changes have to wait.
        is_done = None
        while is_done is None:
            # Between rounds the changes of this scheduler have their turn.
            async with head.moving:
                is_done = await self._rebase(before, part, kept)
        return is_done

    async def _rebase(self, before: DatasetVersion, part: VersionPart, kept: Log) -> bool | None:
        """Put a rewritten base in place of the one that it was made of; False: that one has gone.

        None: other schedulers logged changes each time. What was rewritten still holds then.
        """
        head, past = self._head, len(before.read_log)
        for _ in range(_TRIES):
            held = await head.look()
            if held is None or held.version.key != before.key:
                return False
            standing = held.version
            if standing.log[:past] != before.read_log:
                return False
            log = (*kept, *standing.log[past:])
            following = head.next(held, parts=(part,), log=log, live_rows=None)
            try:
                await head.flip(await head.loaded(following))
            except MovedError:
                continue
            await head.show()
            return True
        return None

    async def _kept(self, before: DatasetVersion) -> Log:
        """Return an entry with what must be known of the log when it has gone, if anything."""
        keys = self._head.subject.keys
        if keys is None or not before.read_log:
            return ()
        found = await logs.remember(self._results, before.read_log, keys.primary)
        return () if found is None else (await self._write(found, made_ms=0),)

    async def _write(self, rows: pa.Table, made_ms: int | None = None) -> LogEntry:
        key = making.key_of(self._head.name)
        batches = rows.combine_chunks().to_batches()
        chunk = await self._results.write_chunk(key, 0, rows.schema, batches)
        now_ms = time.time_ns() // 1_000_000
        return LogEntry(replace(chunk, key=key), now_ms if made_ms is None else made_ms)


def _crumbs(version: DatasetVersion, past: int = 0) -> int:
    """Count the last entries that are worth being gathered; those that are not read stay apart."""
    unread = len(version.log) - version.pending if version.pending else 0
    return logs.tail(version.log[max(past, unread) :])


def _joined(version: DatasetVersion, crumbs: Log, entry: LogEntry) -> dict[str, Any] | None:
    """Return what changes with one entry in place of some; None: these are not there any more."""
    log, pending = version.log, version.pending
    first = log.index(crumbs[0]) if crumbs[0] in log else 0
    end = first + len(crumbs)
    if log[first:end] != crumbs:
        return None
    if pending and first >= len(log) - pending:
        pending -= len(crumbs) - 1
    return {"log": (*log[:first], entry, *log[end:]), "pending": pending}


def _is_due(version: DatasetVersion) -> bool:
    most = min(MOST_LOGGED, max(LEAST_LOGGED, version.base_rows // _SHARE))
    return version.log_rows - _remembered(version) > most


def _remembered(version: DatasetVersion) -> int:
    """Count the rows of a first entry that only says what was seen; it stays however long."""
    first = version.log[:1]
    is_kept = bool(first) and not first[0].made_ms
    return first[0].chunk.row_count if is_kept else 0
