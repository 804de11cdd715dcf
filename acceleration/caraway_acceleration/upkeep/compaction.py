"""Maintains a dataset between refreshes: compacts its log and removes expired rows."""

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from caraway_acceleration.recipes import generated
from caraway_acceleration.recipes.generated import GeneratedVectors
from caraway_acceleration.recipes.recipes import Recipe
from caraway_acceleration.upkeep import logs
from caraway_acceleration.versions import making
from caraway_acceleration.versions.current_version import CurrentVersion, MovedError
from caraway_acceleration.versions.version import DatasetVersion, VersionPart
from caraway_acceleration.versions.versions import HeldVersion
from caraway_core.changes import Log, LogEntry
from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.errors import CarawayError
from caraway_core.protocols.results import ResultStore

logger = logging.getLogger(__name__)
LEAST_LOGGED = 50_000
MOST_LOGGED = 200_000
"""A log is compacted when it reaches a twentieth of its base, within these bounds."""
_SHARE = 20
_UPKEEP = "/upkeep"
_TRIES = 16
CALM_ROWS = 50_000
UPLOAD_ROWS = 16 * 1024
"""A version that adds so many changes comes from an upload, not from a stream of small batches."""
_CALM_S, _MOST_CALM_S = 2.0, 10.0
_MOST_REST_S = 5.0
_DELAYS = Delays(10.0, 60.0, jitter=0.2)


class Compactor:
    """The maintenance of one dataset in one scheduler; only one scheduler works at a time."""

    def __init__(
        self,
        current: CurrentVersion,
        recipe: Recipe,
        results: ResultStore,
        every_s: float | None = None,
    ) -> None:
        self._current = current
        self._recipe = recipe
        self._results = results
        self._every_s = every_s
        self._news = asyncio.Event()
        self._vectors: tuple[GeneratedVectors, ...] = ()
        self._seen = (0, 0)
        self._takes_uploads = False
        self.rested_s = 0.0
        """When the next compaction may begin, on the clock of the event loop."""
        self._claims = {work: current.claim(work) for work in ("", _UPKEEP)}
        self.compactions = 0

    def news(self) -> None:
        """Note that changes were logged."""
        self._news.set()

    def vectors_by(self, vectors: Sequence[GeneratedVectors]) -> None:
        """Have the vectors of a dataset whose rows come as changes made by these models."""
        if (generated_vectors := tuple(vectors)) != self._vectors:
            self._vectors = generated_vectors
            self._news.set()

    async def run(self) -> None:
        """Maintain the dataset until cancelled."""
        loop = asyncio.get_running_loop()
        looked_s, again = loop.time(), Backoff(_DELAYS)
        while True:
            # Changes may arrive constantly, but must not delay the check for expired rows.
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
                await self._reindex()
                await self._gather()
                await self._compact()
                again.succeeded()
            except CarawayError as exc:
                extra = {"dataset": self._current.name, "cause": exc.message}
                logger.warning("maintenance of a dataset failed and is retried", extra=extra)
                await asyncio.sleep(again.failed())

    async def _trim(self) -> None:
        """Rewrite the dataset if it has expired rows."""
        current = self._current
        async with self._claims[""].held() as is_mine:
            held = await self._shown() if is_mine else None
            if held is None:
                return
            counting = self._recipe.expired(held.version.schema, current.clock())
            if counting is None or not await current.maker.number(counting):
                return
            # Another scheduler may be merging entries or compacting.
            await self._claims[_UPKEEP].wait()
            async with self._claims[_UPKEEP].held():
                held = await self._shown()
                if held is not None:
                    await self._rewrite(held.version)

    async def _reindex(self) -> None:
        """Make vectors of other models again, while readers see the old ones and changes go on.

        The changes that arrive meanwhile have vectors of the present models.
        """
        current, vectors = self._current, self._vectors
        if not vectors or not _is_of_others(current.ours, vectors):
            return
        async with self._claims[""].held() as is_mine:
            if not is_mine:
                return
            await self._claims[_UPKEEP].wait()
            async with self._claims[_UPKEEP].held():
                held = await self._shown()
                if held is None or not _is_of_others(held, vectors):
                    return
                note = generated.made_by(vectors)
                if not generated.says_models(held.version.sql):
                    # The first models of the dataset: all its vectors are theirs.
                    return await self._note(note)
                logger.info("vectors are made again", extra={"dataset": current.name})
                recipe = replace(self._recipe, vectors=vectors)
                sql = recipe.reindexed(held.version.schema, current.clock())
                if await self._rewrite(held.version, sql, note):
                    logger.info("vectors were made again", extra={"dataset": current.name})

    async def _note(self, note: str) -> None:
        """Write down which models make the vectors of the dataset."""
        current = self._current
        async with current.moving:
            for _ in range(_TRIES):
                held = await current.look()
                if held is None or generated.says_models(held.version.sql):
                    return
                try:
                    await current.flip(await current.loaded(current.next(held, sql=note)))
                except MovedError:
                    continue
                return await current.show()

    async def _gather(self) -> None:
        """Merge many small log entries into one, because each costs every statement that reads
        them.

        This requires the claim: a compaction on another scheduler would fail if the entries that it
        has read were merged.
        """
        held = self._current.ours
        if held is None or not _crumbs(held.version):
            return
        async with self._claims[_UPKEEP].held() as is_mine:
            if is_mine:
                await self._join()

    async def _gather_after(self, before: DatasetVersion) -> None:
        """Merge entries that were logged after the version that is being rewritten."""
        while True:
            await self._news.wait()
            self._news.clear()
            with suppress(CarawayError):
                await self._join(len(before.read_log))

    async def _join(self, past: int = 0) -> None:
        """Merge the last entries of a log into one, except the first `past` entries."""
        current = self._current
        if current.ours is None or not _crumbs(current.ours.version, past):
            return
        async with current.moving:
            held = await current.look()
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
                    await current.flip(await current.loaded(current.next(held, **following)))
                except MovedError:
                    held = await current.look()
                else:
                    return await current.show()

    async def _compact(self) -> None:
        """Merge the log into its base, while changes continue."""
        current = self._current
        is_uploaded = self._is_uploaded()
        if current.ours is None or not _is_due(current.ours.version):
            return
        if is_uploaded and current.ours.version.log_rows > CALM_ROWS:
            await self._calm()
        await self._rest()
        async with self._claims[_UPKEEP].held() as is_mine:
            held = await self._shown() if is_mine else None
            if held is None or not _is_due(held.version):
                return
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            if not await self._rewrite(held.version):
                return
            self.compactions += 1
            took_s = loop.time() - began_s
            self.rested_s = loop.time() + min(took_s, _MOST_REST_S)
            extra = {
                "dataset": current.name,
                "rows": held.version.log_rows,
                "elapsed_ms": round(took_s * 1000),
            }
            logger.info("log was compacted", extra=extra)

    async def _rest(self) -> None:
        """Wait for as long as the last rewrite took, so that it has at most half of the time."""
        while asyncio.get_running_loop().time() < self.rested_s:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self.rested_s):
                    await self._news.wait()
            self._news.clear()
            await self._gather()

    async def _calm(self) -> None:
        """Wait until no uploads come for a moment, but not for long.

        Large uploads often follow one another. A rewrite would take the processor from the next
        one, and would have to be done again after it. A stream of small batches does not end, and
        the longer its log, the more a rewrite takes.
        """
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + _MOST_CALM_S
        while loop.time() < deadline_s:
            try:
                async with asyncio.timeout(_CALM_S):
                    await self._news.wait()
            except TimeoutError:
                return
            self._news.clear()
            if not self._is_uploaded():
                return
            await self._gather()

    def _is_uploaded(self) -> bool:
        """Return whether the latest changes came in versions with many of them."""
        if self._current.ours is not None:
            version = self._current.ours.version
            (number, rows), self._seen = self._seen, (version.number, version.log_rows)
            if version.log_rows > rows:
                least = UPLOAD_ROWS * max(1, version.number - number)
                self._takes_uploads = version.log_rows - rows >= least
        return self._takes_uploads

    async def _shown(self) -> HeldVersion | None:
        """Let readers see the current version, and return it if they do.

        A statement reads what readers see. If that were older than the version, the stored rows
        would lack the changes in between.
        """
        current = self._current
        async with current.moving:
            held = await current.look()
            await current.show()
        return held if held is not None and current.is_readable(held.version) else None

    async def _rewrite(
        self, before: DatasetVersion, sql: str | None = None, note: str | None = None
    ) -> bool:
        """Rewrite a base together with the log that statements read, while changes continue.

        `sql` returns the rows, by default those that are loaded; `note` replaces the statement
        that the version names.
        """
        gathering = tasks.begin(self._gather_after(before))
        try:
            return await self._rewritten(before, sql, note)
        finally:
            gathering.cancel()
            self._news.set()  # It may have consumed a notification without handling it.

    async def _rewritten(self, before: DatasetVersion, sql: str | None, note: str | None) -> bool:
        current = self._current
        sql = sql or self._recipe.rewritten(before.schema, current.clock())
        read = {before.key: before.read_log}
        part = await current.make(sql, lambda _: None, before.partition_by, read)
        kept = await self._kept(before)
        following = replace(before, parts=(part,), log=kept, pending=0)
        await current.load(following)  # Do most of the work before changes have to wait.
        is_done = None
        while is_done is None:
            # Between rounds, changes of this scheduler can proceed.
            async with current.moving:
                is_done = await self._rebase(before, part, kept, note)
        return is_done

    async def _rebase(
        self, before: DatasetVersion, part: VersionPart, kept: Log, note: str | None
    ) -> bool | None:
        """Replace a base by its rewritten one; returns False if that base is not current any more.

        Returns None if other schedulers logged changes in every try; the rewritten base is still
        valid then.
        """
        current, past = self._current, len(before.read_log)
        for _ in range(_TRIES):
            held = await current.look()
            if held is None or held.version.key != before.key:
                return False
            standing = held.version
            if standing.log[:past] != before.read_log:
                return False
            log = (*kept, *standing.log[past:])
            made_by = standing.sql if note is None else note
            following = current.next(held, parts=(part,), log=log, live_rows=None, sql=made_by)
            try:
                await current.flip(await current.loaded(following))
            except MovedError:
                continue
            await current.show()
            return True
        return None

    async def _kept(self, before: DatasetVersion) -> Log:
        """Return an entry with the positions that must outlive the log, if there are any."""
        keys = self._current.subject.keys
        if keys is None or not before.read_log:
            return ()
        found = await logs.remember(self._results, before.read_log, keys.primary)
        return () if found is None else (await self._write(found, made_ms=0),)

    async def _write(self, rows: pa.Table, made_ms: int | None = None) -> LogEntry:
        key = making.key_of(self._current.name)
        batches = rows.combine_chunks().to_batches()
        chunk = await self._results.write_chunk(key, 0, rows.schema, batches)
        now_ms = time.time_ns() // 1_000_000
        return LogEntry(replace(chunk, key=key), now_ms if made_ms is None else made_ms)


def _is_of_others(held: HeldVersion | None, vectors: Sequence[GeneratedVectors]) -> bool:
    """Return whether the vectors of a version are of other models, or nobody noted whose."""
    if held is None:
        return False
    sql = held.version.sql
    return not generated.says_models(sql) or generated.is_outdated(sql, vectors)


def _crumbs(version: DatasetVersion, past: int = 0) -> int:
    """Return how many of the last entries should be merged; unread entries stay separate."""
    unread = len(version.log) - version.pending if version.pending else 0
    return logs.tail(version.log[max(past, unread) :])


def _joined(version: DatasetVersion, crumbs: Log, entry: LogEntry) -> dict[str, object] | None:
    """Return the changed fields after a merge, or None if the merged entries are gone."""
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
    """Return the row count of a first entry that only has positions; it is never compacted."""
    first = version.log[:1]
    is_kept = bool(first) and not first[0].made_ms
    return first[0].chunk.row_count if is_kept else 0
