"""Applies the changes to one dataset: queues them and logs them in groups.

Waiting requests are logged as one entry in their order, which keeps many small requests cheap. An
entry is first stored in the chunk store, then loaded by executors. It takes effect when the version
in the state store names it. Requests are answered once statements read their changes.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from caraway_acceleration.changes.changed_vectors import ChangedVectors
from caraway_acceleration.changes.feed_requests import (
    FeedRequest,
    fail,
    in_order,
    is_whole,
    made_upon,
)
from caraway_acceleration.changes.ingesting import (
    BaseWithLog,
    QueueFullError,
    RequestReusedError,
    SourcePositions,
    StreamStoppedError,
)
from caraway_acceleration.changes.log_entries import LogEntries
from caraway_acceleration.versions import fingerprints, making
from caraway_acceleration.versions import requests as requests_applied
from caraway_acceleration.versions.current_version import CurrentVersion, MovedError
from caraway_acceleration.versions.version import DatasetVersion, VersionPart
from caraway_acceleration.versions.versions import HeldVersion, Successor
from caraway_core.changes import Changes
from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError, QueryError, UnavailableError
from caraway_core.partitions.keys import PartitionBy
from caraway_core.protocols.results import ResultStore

logger = logging.getLogger(__name__)
MOST_WAITING = 256
_MOST_REQUESTS = 64
_MOST_ROWS = 50_000
_TRIES = 16
_REUSED = (
    "this Idempotency-Key was used for other changes, so these are not applied; send them with "
    "another key"
)


class FedDataset(Protocol):
    """A dataset as the feed of its changes asks about it."""

    def source_schema(self) -> pa.Schema:
        """Return the columns of the source."""
        ...

    def partition_terms(self) -> PartitionBy:
        """Return the terms by which a first version is partitioned."""
        ...

    def changes_logged(self) -> None:
        """Note that changes were logged."""
        ...


class Feed:
    """Applies changes to one dataset in one scheduler; several schedulers may do so at once."""

    def __init__(
        self,
        current: CurrentVersion,
        results: ResultStore,
        dataset: FedDataset,
        *,
        vectors: ChangedVectors | None = None,
    ) -> None:
        """Create it; `vectors` adds to the columns of the source."""
        self._vectors = vectors
        self._current = current
        self._entries = LogEntries(current.name, results)
        self._dataset = dataset
        self._applied_requests = current.requests()
        self._waiting: asyncio.Queue[FeedRequest] = asyncio.Queue(MOST_WAITING)
        self._is_stopped = False
        self.applied = 0

    @property
    def waiting(self) -> int:
        """The number of requests that have not been started."""
        return self._waiting.qsize()

    @property
    def schema(self) -> pa.Schema:
        """The columns that changes have: those of the dataset but the generated ones."""
        shown = self._current.shown
        if shown is None:
            return self._dataset.source_schema()
        if self._vectors is None:
            return shown.schema
        return self._vectors.received(shown.schema, self._dataset.source_schema())

    @property
    def position(self) -> str | None:
        """The position in the source of changes that is stored with the version, or None."""
        held = self._current.ours
        return (held.version.position or None) if held else None

    async def ensure_version(self) -> None:
        """Ensure that a version exists: the current one, or a new one without rows.

        Raises:
            CarawayError: the current version has other columns or keys, and would be lost.
        """
        current = self._current
        async with current.moving:
            if self._needs_version(await current.look()):
                with suppress(MovedError):
                    await current.flip(self._first(current.held))
            await current.show()
        self._dataset.changes_logged()

    def _first(self, standing: HeldVersion | None) -> Successor:
        """Return the version to begin with: rows of an earlier release, or no rows.

        Raises:
            CarawayError: the current version has other columns or keys, and would be lost.
        """
        current = self._current
        if (
            standing is not None
            and standing.version.fingerprint
            and not current.subject.is_followed
        ):
            is_earlier = fingerprints.is_earlier_form(standing.version.fingerprint)
            if is_earlier and standing.version.schema.equals(self._stored_schema()):
                logger.warning(
                    "an earlier release stored the rows of this dataset and cannot say with which "
                    "settings; they are used, because their columns are the same",
                    extra={"dataset": current.name},
                )
                return current.next(standing, **current.subject.names)
            raise CarawayError(
                "its rows were stored with another source, other columns, another primary "
                "key or other unique indexes, and came as changes, which cannot be loaded "
                "again; restore these settings, or choose another name for the dataset"
            )
        part = VersionPart(making.key_of(current.name), self._stored_schema(), ())
        empty = current.anew(standing, part, "", self._dataset.partition_terms())
        # The position belongs to the rows that were replaced.
        return replace(empty, version=replace(empty.version, position=""))

    def _needs_version(self, held: HeldVersion | None) -> bool:
        """Return whether there is no version, or one whose columns nothing was loaded with yet."""
        if held is None:
            return True
        current, version = self._current, held.version
        if version.position or current.is_readable(version):
            return False
        return not version.schema.equals(self._stored_schema())

    def _stored_schema(self) -> pa.Schema:
        schema = self._dataset.source_schema()
        return schema if self._vectors is None else self._vectors.stored(schema)

    async def run(self) -> None:
        """Apply changes until cancelled, and reject the requests that still wait then."""
        requests: list[FeedRequest] = []
        self._is_stopped = False
        try:
            while True:
                requests = await self._next()
                await self._apply(requests)
        finally:
            self._refuse(requests)
            self.stop()

    def stop(self) -> None:
        """Accept no more changes, and reject the requests that wait."""
        self._is_stopped = True
        while not self._waiting.empty():
            self._refuse([self._waiting.get_nowait()])

    def _refuse(self, requests: Sequence[FeedRequest]) -> None:
        for each in requests:
            fail(each, StreamStoppedError(f"dataset '{self._current.name}' has been stopped"))

    async def apply(
        self,
        made: Changes,
        request_id: str | None,
        deadline_s: float,
        source: SourcePositions | None = None,
        upon: BaseWithLog | None = None,
    ) -> int:
        """Apply the changes of one request; they are durable and visible when this returns.

        Changes of a followed source are applied only if they continue from the dataset's position.
        Changes with `upon` are applied only to exactly that state of the dataset.

        Raises:
            MovedOnError: the dataset is in another state.
            QueueFullError: they were not applied within the time limit.
            StreamStoppedError: the dataset is being removed.
            CarawayError: they cannot be applied; none of them is.
        """
        name = self._current.name
        if self._is_stopped:
            raise StreamStoppedError(f"dataset '{name}' no longer takes changes")
        applied: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        request = FeedRequest(made, request_id, source, upon, applied)
        try:
            async with asyncio.timeout(deadline_s):
                await self._waiting.put(request)
                if self._is_stopped:
                    raise StreamStoppedError(f"dataset '{name}' no longer takes changes")
                return await request.applied
        except TimeoutError:
            state = (
                "they were being written and may or may not be applied; send them again"
                if request.has_begun
                else "none of them is applied; send fewer at once, or try later"
            )
            raise QueueFullError(
                f"dataset '{name}': changes were not applied within {deadline_s:.0f} s; {state}"
            ) from None

    async def _next(self) -> list[FeedRequest]:
        requests = [await self._waiting.get()]
        rows = requests[0].changes.rows.num_rows
        while len(requests) < _MOST_REQUESTS and rows < _MOST_ROWS and not self._waiting.empty():
            requests.append(self._waiting.get_nowait())
            rows += requests[-1].changes.rows.num_rows
        return requests

    async def _apply(self, requests: Sequence[FeedRequest]) -> None:
        wanted = [each for each in requests if not each.applied.done()]
        for each in wanted:
            each.has_begun = True
        if self._vectors is not None:
            wanted = await self._embedded(wanted, self._vectors)
        try:
            await self._log(wanted)
        except CarawayError as exc:
            if len(wanted) > 1 and isinstance(exc, QueryError):
                # One of them may be at fault, so try each of them alone.
                for each in wanted:
                    await self._apply([each])
                return
            for each in wanted:
                fail(each, exc)
        except BaseException as exc:
            if tasks.ends(exc):
                raise
            logger.exception("changes were not applied", extra={"dataset": self._current.name})
            for each in wanted:
                fail(each, CarawayError("internal error"))

    async def _embedded(
        self, requests: Sequence[FeedRequest], vectors: ChangedVectors
    ) -> list[FeedRequest]:
        """Add the generated columns; a request whose texts cannot be embedded fails."""
        done = []
        for each in requests:
            try:
                if not each.is_embedded:
                    each.changes = await vectors.added(each.changes, self._dataset.source_schema())
                each.is_embedded = True
                done.append(each)
            except CarawayError as exc:
                fail(each, exc)
        return done

    async def _log(self, requests: Sequence[FeedRequest]) -> None:
        current = self._current
        async with current.moving:
            for _ in range(_TRIES):
                held = current.ours or await current.look()
                if held is None:
                    raise StreamStoppedError(f"dataset '{current.name}' has no rows to change")
                # A request that was rejected for an older version stays rejected.
                requests = [each for each in requests if not each.applied.done()]
                if any(each.request_id is not None for each in requests):
                    await self._applied_requests.learn(held.version)
                taken = in_order(requests, held.version, current.name)
                new = made_upon(self._unknown(taken, held.version), held.version, current.name)
                try:
                    if new:
                        await self._move(held, new)
                    await current.show()
                except MovedError:
                    continue
                self.applied += sum(each.changes.received for each in new)
                for each in requests:
                    if not each.applied.done():
                        each.applied.set_result(each.changes.received)
                self._dataset.changes_logged()
                return
        raise UnavailableError(
            f"dataset '{current.name}': too many concurrent changes, and none of these is applied; "
            "send them again"
        )

    def _unknown(
        self, requests: Sequence[FeedRequest], version: DatasetVersion
    ) -> list[FeedRequest]:
        """Drop requests that were already applied, or that occur twice here.

        A request whose key was used for other changes is rejected, because its changes would be
        lost silently.
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
                fail(each, RequestReusedError(_REUSED))
        return new

    async def _move(self, held: HeldVersion, requests: Sequence[FeedRequest]) -> None:
        current, standing = self._current, held.version
        made = [each.changes for each in requests]
        log = (*standing.log, *await self._entries.written(standing, made, current.clock()))
        ids = [each.request_id for each in requests if each.request_id is not None]
        recent, pages = await self._applied_requests.turned(standing)
        sources = [each.source for each in requests if each.source is not None]
        added = len(log) - len(standing.log)
        following = current.next(
            held,
            log=log,
            position=sources[-1].position if sources else standing.position,
            requests=(*recent, *ids),
            request_pages=pages,
            pending=0 if is_whole(requests, standing) else standing.pending + added,
        )
        await current.flip(await current.loaded(following))
