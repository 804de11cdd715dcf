"""A collection of MongoDB as a change source: all of its documents, then its change stream."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import islice

import pyarrow as pa
from pymongo.read_concern import ReadConcern

from caraway_core.changes import Changes, Op, joined
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import ChangeRequest, PositionLostError, SourceBatch
from caraway_plugins.changes.mongodb import streaming
from caraway_plugins.changes.mongodb.streaming import Event, Pages, StreamPage
from caraway_plugins.sources.documents.table import Documents, DocumentTable
from caraway_plugins.sources.mongodb import connecting, values
from caraway_plugins.sources.mongodb.source import MongodbSource, MongoReads

_KEY = "_id"
_PAGE = 1_000
_TOLD_S = 60.0
"""How often the position of a quiet collection is stored, so that it stays in the oplog."""


@dataclass(frozen=True, slots=True)
class MongoPosition:
    """The token of the last change; `is_loading` means that rows are not complete."""

    collection: str
    token: str
    is_loading: bool = False

    def text(self) -> str:
        """Encode the position as text."""
        return json.dumps([self.collection, self.token, self.is_loading], separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class FollowedCollection:
    """A collection that is followed, and its columns."""

    table: DocumentTable
    reads: MongoReads


class MongodbChanges:
    """Implements `ChangeSource` for a collection of MongoDB."""

    def __init__(self, request: ChangeRequest, clock: SecondsClock = time.monotonic) -> None:
        """Take the time, by which positions of quiet collections are told."""
        self._request = request
        self._clock = clock

    async def schema(self) -> pa.Schema:
        return (await self._look()).table.schema

    async def primary_key(self) -> tuple[str, ...]:
        await self._look()
        return (_KEY,)

    async def batches(self, position: str | None) -> AsyncGenerator[SourceBatch, None]:
        followed = await self._look()
        table, name = followed.table, followed.reads.collection
        at = None if position is None else _position(position, name)
        token = None if at is None or at.is_loading else at.token
        pages = Pages(streaming.stream(followed.reads, token))
        try:
            page = await _taken(pages)
            if token is None:
                # Documents that change during the scan are in the stream, too.
                loading = MongoPosition(name, page.token, is_loading=True).text()
                async with aclosing(_loading(followed, loading)) as loaded:
                    async for batch in loaded:
                        yield batch
                # A page without changes, which is asked for after the scan, is newer than it.
                is_new = False
                while page.events or not is_new:
                    changes = await asyncio.to_thread(_followed, table, page.events)
                    yield SourceBatch(changes, loading, is_whole=False, made_at=page.made_at)
                    page, is_new = await _taken(pages), True
            told, told_s = page.token, self._clock()
            at_text = MongoPosition(name, told if token is None else token).text()
            yield SourceBatch(table.changes([], [], 0), at_text)
            while True:
                is_due = page.token != told and self._clock() >= told_s + _TOLD_S
                if page.events or is_due:
                    told, told_s = page.token, self._clock()
                    changes = await asyncio.to_thread(_followed, table, page.events)
                    at_text = MongoPosition(name, told).text()
                    yield SourceBatch(changes, at_text, made_at=page.made_at)
                page = await _taken(pages)
        finally:
            await asyncio.to_thread(pages.close)

    async def confirm(self, position: str) -> None:
        """Do nothing: the oplog has its changes as long as its size allows."""

    async def aclose(self) -> None:
        """Do nothing; the connections are closed when the iteration over `batches` ends."""

    async def _look(self) -> FollowedCollection:
        return await asyncio.to_thread(_look, self._request)


async def _taken(pages: Pages[StreamPage]) -> StreamPage:
    page = await asyncio.to_thread(pages.take)
    assert page is not None  # It has no end.
    return page


async def _loading(
    followed: FollowedCollection, position: str
) -> AsyncGenerator[SourceBatch, None]:
    """Yield a truncation, and all documents."""
    documents = Pages(_documents(followed.reads))
    emptied = followed.table.changes([{}], [Op.TRUNCATE], 0)
    try:
        while (found := await asyncio.to_thread(documents.take)) is not None:
            rows = await asyncio.to_thread(_loaded, followed.table, found)
            yield SourceBatch(joined([emptied, rows]), position, is_whole=False)
            emptied = followed.table.changes([], [], 0)
        yield SourceBatch(emptied, position, is_whole=False)
    finally:
        await asyncio.to_thread(documents.close)


def _documents(reads: MongoReads) -> Generator[Documents, None, None]:
    """Yield documents as they are after the changes that the stream has."""
    with connecting.connected(reads.login, reads.title) as database:
        collection = database[reads.collection].with_options(read_concern=ReadConcern("majority"))
        cursor = collection.find({}, batch_size=_PAGE)
        while page := [values.values_of(each) for each in islice(cursor, _PAGE)]:
            yield page


def _look(request: ChangeRequest) -> FollowedCollection:
    """Look a collection up.

    Raises:
        DatasetError: it cannot be followed; the message says what to change.
    """
    learned = None if request.declared else request.learned()
    fields = request.declared if learned is None else tuple(learned)
    table = MongodbSource().resolve(replace(request.as_source(), declared=fields))
    reads = table.reads
    assert isinstance(reads, MongoReads)
    if _KEY not in table.schema.names:
        raise DatasetError(
            "invalid",
            f"{reads.title}: the dataset has no column '{_KEY}', which is its key; declare it "
            "under 'columns'",
        )
    if request.primary_key not in ((), (_KEY,)):
        raise DatasetError(
            "invalid", f"{reads.title} has the key {_KEY}; declare it as 'primary_key', or none"
        )
    return FollowedCollection(table, reads)


def _loaded(table: DocumentTable, page: Documents) -> Changes:
    return table.changes(page, [Op.UPSERT] * len(page), len(page))


def _followed(table: DocumentTable, events: Sequence[Event]) -> Changes:
    documents: list[dict[str, object]] = []
    ops: list[Op] = []
    for event in events:
        # A document that was deleted since has no content, and its deletion follows.
        if event["operationType"] == "delete":
            documents.append(values.values_of({_KEY: event["documentKey"][_KEY]}))
            ops.append(Op.DELETE)
        elif (document := event.get("fullDocument")) is not None:
            documents.append(values.values_of(document))
            ops.append(Op.UPSERT)
    return table.changes(documents, ops, len(events))


def _position(text: str, collection: str) -> MongoPosition:
    """Parse the result of `MongoPosition.text`.

    Raises:
        PositionLostError: it is of another collection or another kind of source.
    """
    try:
        of, token, is_loading = json.loads(text)
    except (ValueError, TypeError) as exc:
        raise PositionLostError(
            "the stored position of the dataset is not one of MongoDB; reloading"
        ) from exc
    if of != collection or not isinstance(token, str):
        raise PositionLostError("the dataset reads another collection than before; reloading")
    return MongoPosition(of, token, bool(is_loading))
