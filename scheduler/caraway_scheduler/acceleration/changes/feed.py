"""Changes to one dataset on their way: queued, logged together, and read before they are answered.

Requests that wait are logged as one entry, in their order, which makes them cheap when they are
many. An entry is in the result store first, then in the memory of those who will read it; it
counts when the state store names it; and the requests are answered when statements read it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from caraway_core import changes, tasks
from caraway_core.changes import Changes, LogEntry
from caraway_core.errors import CarawayError, MovedOnError, QueryError, UnavailableError
from caraway_core.ids import TableName
from caraway_core.partitions.keys import PartitionBy
from caraway_core.protocols.results import ChunkInfo, ResultStore
from caraway_scheduler.acceleration.changes.ingesting import (
    ChangesRefusedError,
    QueueFullError,
    RequestReusedError,
    StreamStoppedError,
    Upon,
    Whence,
)
from caraway_scheduler.acceleration.versions import making
from caraway_scheduler.acceleration.versions import requests as requests_applied
from caraway_scheduler.acceleration.versions.head import CurrentVersion, MovedError
from caraway_scheduler.acceleration.versions.version import DatasetVersion, VersionPart
from caraway_scheduler.acceleration.versions.versions import HeldVersion

logger = logging.getLogger(__name__)
MOST_WAITING = 256
_MOST_REQUESTS = 64
_MOST_ROWS = 50_000
_TRIES = 16
_REUSED = (
    "this Idempotency-Key was used for other changes, and these are not applied; send them with a "
    "key of their own"
)


@dataclass(slots=True)
class _Request:
    changes: Changes
    request_id: str | None
    source: Whence | None
    upon: Upon | None
    applied: "asyncio.Future[int]" = field(compare=False)
    has_begun: bool = False


class Feed:
    """Applies changes to one dataset, for one scheduler; several may do so at once."""

    def __init__(
        self,
        head: CurrentVersion,
        results: ResultStore,
        schema: Callable[[], pa.Schema],
        cut: Callable[[], PartitionBy],
        on_moved: Callable[[], None],
        *,
        can_begin_anew: bool = False,
    ) -> None:
        self._head = head
        self._results = results
        self._schema = schema
        self._cut = cut
        self._on_moved = on_moved
        self._can_begin_anew = can_begin_anew
        self._applied_requests = head.requests()
        self._waiting: asyncio.Queue[_Request] = asyncio.Queue(MOST_WAITING)
        self._log_key, self._entries, self._base = "", 0, ""
        self._is_stopped = False
        self.applied = 0

    @property
    def waiting(self) -> int:
        """How many requests have not been begun."""
        return self._waiting.qsize()

    @property
    def schema(self) -> pa.Schema:
        """The columns of the dataset, once it can be read."""
        shown = self._head.shown
        return shown.schema if shown is not None else self._schema()

    @property
    def position(self) -> str | None:
        """How far the source of the changes has been read, as was told with them."""
        held = self._head.ours
        return (held.version.position or None) if held else None

    async def begin(self) -> None:
        """Have a version to change: the one that stands, or one without rows.

        Raises:
            CarawayError: what stands is of other columns or keys, and would be lost.
        """
        head = self._head
        async with head.moving:
            if await head.look() is None:
                standing = head.held
                is_other = standing is not None and bool(standing.version.origin)
                if is_other and not self._can_begin_anew:
                    raise CarawayError(
                        "its rows were kept with another source, other columns, another primary "
                        "key or other unique indexes, and came as changes, which cannot be loaded "
                        "again; set these back, or choose another name for the dataset"
                    )
                part = VersionPart(making.key_of(head.name), self._schema(), ())
                with suppress(MovedError):
                    await head.flip(head.anew(standing, part, "", self._cut()))
            await head.show()
        self._on_moved()

    async def run(self) -> None:
        """Apply what comes until cancelled; what then waits is refused."""
        requests: list[_Request] = []
        self._is_stopped = False
        try:
            while True:
                requests = await self._next()
                await self._apply(requests)
        finally:
            self._refuse(requests)
            self.stop()

    def stop(self) -> None:
        """Take no more changes, and refuse those that wait."""
        self._is_stopped = True
        while not self._waiting.empty():
            self._refuse([self._waiting.get_nowait()])

    def _refuse(self, requests: Sequence[_Request]) -> None:
        for each in requests:
            _fail(each, StreamStoppedError(f"dataset '{self._head.name}' has been stopped"))

    async def apply(
        self,
        made: Changes,
        request_id: str | None,
        deadline_s: float,
        source: Whence | None = None,
        upon: Upon | None = None,
    ) -> int:
        """Apply the changes of one request; they are durable, and read by what comes after.

        Those of a followed source are applied if it was read from where the dataset is, and those
        `upon` a state of the dataset only to just that state.

        Raises:
            MovedOnError: the dataset is in another state.
            QueueFullError: there was no place in the queue, or no answer, within the time.
            StreamStoppedError: the dataset has gone.
            CarawayError: they cannot be applied; none of them is.
        """
        name = self._head.name
        if self._is_stopped:
            raise StreamStoppedError(f"dataset '{name}' takes no changes any more")
        applied: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        request = _Request(made, request_id, source, upon, applied)
        try:
            async with asyncio.timeout(deadline_s):
                await self._waiting.put(request)
                if self._is_stopped:
                    raise StreamStoppedError(f"dataset '{name}' takes no changes any more")
                return await request.applied
        except TimeoutError:
            state = (
                "they were being written and may be applied or not; send them again"
                if request.has_begun
                else "none of them is applied; send fewer at once, or later"
            )
            raise QueueFullError(
                f"dataset '{name}': changes were not applied within {deadline_s:.0f} s; {state}"
            ) from None

    async def _next(self) -> list[_Request]:
        requests = [await self._waiting.get()]
        rows = requests[0].changes.rows.num_rows
        while len(requests) < _MOST_REQUESTS and rows < _MOST_ROWS and not self._waiting.empty():
            requests.append(self._waiting.get_nowait())
            rows += requests[-1].changes.rows.num_rows
        return requests

    async def _apply(self, requests: Sequence[_Request]) -> None:
        wanted = [each for each in requests if not each.applied.done()]
        for each in wanted:
            each.has_begun = True
        try:
            await self._log(wanted)
        except CarawayError as exc:
            if len(wanted) > 1 and isinstance(exc, QueryError):
                # One of them may be at fault; the others are not to suffer for it.
                for each in wanted:
                    await self._apply([each])
                return
            for each in wanted:
                _fail(each, exc)
        except BaseException as exc:
            if tasks.ends(exc):
                raise
            logger.exception("changes were not applied", extra={"dataset": self._head.name})
            for each in wanted:
                _fail(each, CarawayError("internal error"))

    async def _log(self, requests: Sequence[_Request]) -> None:
        head = self._head
        async with head.moving:
            for _ in range(_TRIES):
                held = head.ours or await head.look()
                if held is None:
                    raise StreamStoppedError(f"dataset '{head.name}' has no rows to change")
                # What was refused upon an older version stays refused.
                requests = [each for each in requests if not each.applied.done()]
                if any(each.request_id is not None for each in requests):
                    await self._applied_requests.learn(held.version)
                taken = _in_order(requests, held.version, head.name)
                new = _upon(self._unknown(taken, held.version), held.version, head.name)
                try:
                    if new:
                        await self._move(held, new)
                    await head.show()
                except MovedError:
                    continue
                self.applied += sum(each.changes.received for each in new)
                for each in requests:
                    if not each.applied.done():
                        each.applied.set_result(each.changes.received)
                self._on_moved()
                return
        raise UnavailableError(
            f"dataset '{head.name}': too many concurrent changes, and none of these is applied; "
            "send them again"
        )

    def _unknown(self, requests: Sequence[_Request], version: DatasetVersion) -> list[_Request]:
        """Leave out requests that were sent again after they had been applied, or are here twice.

        One whose key was used for other changes is refused: those here would be lost in silence.
        """
        here: dict[str, str] = {}
        new = []
        for each in requests:
            request = each.request_id
            if request is None:
                new.append(each)
                continue
            key = requests_applied.id_of(request)
            applied = here.get(key) or self._applied_requests.find(version, request)
            if applied is None:
                here[key] = request
                new.append(each)
            elif applied != request:
                _fail(each, RequestReusedError(_REUSED))
        return new

    async def _move(self, held: HeldVersion, requests: Sequence[_Request]) -> None:
        head, standing = self._head, held.version
        joined = changes.joined([each.changes for each in requests])
        log = standing.log
        if joined.rows.num_rows:
            log = (*log, await self._write(standing, joined.rows))
        ids = [each.request_id for each in requests if each.request_id is not None]
        recent, pages = await self._applied_requests.turned(standing)
        sources = [each.source for each in requests if each.source is not None]
        added = len(log) - len(standing.log)
        following = head.next(
            held,
            log=log,
            position=sources[-1].position if sources else standing.position,
            requests=(*recent, *ids),
            request_pages=pages,
            pending=0 if _is_whole(requests, standing) else standing.pending + added,
        )
        await head.flip(await head.loaded(following))

    async def _write(self, standing: DatasetVersion, rows: pa.Table) -> LogEntry:
        """Store an entry, under a key that goes with the base, and that nobody else writes to."""
        # Under a key that the version does not name somebody may be removing what lies there. One
        # that it names stays: who takes it out moves the version, and this entry is written anew.
        if self._base != standing.key or self._log_key not in standing.keys:
            self._base, self._log_key = standing.key, making.key_of(self._head.name)
        self._entries += 1
        batches = rows.combine_chunks().to_batches()
        write = partial(self._results.write_chunk, self._log_key, self._entries)
        chunk = await write(rows.schema, batches)
        return LogEntry(_keyed(chunk, self._log_key), time.time_ns() // 1_000_000)


def _upon(
    requests: Sequence[_Request], standing: DatasetVersion, name: TableName
) -> list[_Request]:
    """Refuse changes that were made of another state than the one that stands."""
    state = Upon(standing.key, standing.read_log)
    good: list[_Request] = []
    for each in requests:
        if each.upon is not None and (good or each.upon != state):
            _fail(each, MovedOnError(f"dataset '{name}' was changed meanwhile"))
        else:
            good.append(each)
    return good


def _in_order(
    requests: Sequence[_Request], standing: DatasetVersion, name: TableName
) -> list[_Request]:
    """Refuse what a source said after another position than the one that the dataset is at.

    It was read by somebody who did not know how far the dataset had come; so nothing is applied
    twice, or left out.
    """
    position, good = standing.position, []
    for each in requests:
        if each.source is not None:
            if (each.source.after or "") != position:
                message = f"dataset '{name}' has moved on; its source is read from there again"
                _fail(each, ChangesRefusedError(message))
                continue
            position = each.source.position
        good.append(each)
    return good if _is_whole(good, standing) else _of_sources(good, name)


def _is_whole(requests: Sequence[_Request], standing: DatasetVersion) -> bool:
    """Return whether statements read these changes at once: no load is under way."""
    last = [each.source for each in requests if each.source is not None][-1:]
    return last[0].is_whole if last else not standing.pending


def _of_sources(requests: Sequence[_Request], name: TableName) -> list[_Request]:
    """Refuse changes of clients: nobody reads them before the load of the source is whole."""
    for each in requests:
        if each.source is None:
            message = f"dataset '{name}' is being loaded from its source; send the changes later"
            _fail(each, StreamStoppedError(message))
    return [each for each in requests if each.source is not None]


def _keyed(chunk: ChunkInfo, key: str) -> ChunkInfo:
    return ChunkInfo(chunk.index, chunk.row_count, chunk.size_bytes, chunk.sha256, "", key)


def _fail(request: _Request, exc: CarawayError) -> None:
    if not request.applied.done():
        request.applied.set_exception(exc)
