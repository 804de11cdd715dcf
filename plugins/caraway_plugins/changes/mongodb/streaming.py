"""The change stream of a collection, a page at a time. All of it blocks."""

import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from bson.int64 import Int64
from pymongo.errors import OperationFailure

from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import PositionLostError
from caraway_plugins.sources.mongodb import connecting
from caraway_plugins.sources.mongodb.source import MongoReads

_WAIT_MS = 500
_TOKEN = "_data"
_LOST = frozenset({260, 280, 286})
"""Codes of a token that is none, or that is older than the oplog."""
_WITHOUT = frozenset({59, 166, 238, 40324, 40573})
"""Codes of servers and collections without change streams."""
_ENDED = frozenset({"drop", "rename", "dropDatabase", "invalidate"})

T = TypeVar("T")
Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StreamPage:
    """Changes in order, and the token after them."""

    events: Sequence[Event]
    token: str

    @property
    def made_at(self) -> datetime | None:
        """When the last change was made."""
        at = self.events[-1].get("clusterTime") if self.events else None
        made: datetime | None = at.as_datetime() if at is not None else None
        return made


class Pages(Generic[T]):
    """Pages of a generator that threads ask for, and that another one may close."""

    def __init__(self, pages: Generator[T, None, None]) -> None:
        """Take the generator."""
        self._pages = pages
        self._lock = threading.Lock()

    def take(self) -> T | None:
        """Return the next page; None: there is none."""
        with self._lock:
            return next(self._pages, None)

    def close(self) -> None:
        """Close the generator, after a page that another thread waits for."""
        with self._lock:
            self._pages.close()


def stream(reads: MongoReads, token: str | None) -> Generator[StreamPage, None, None]:
    """Yield the changes after a token, or from now on, without end. A page may have none.

    Raises:
        PositionLostError: the changes after the token are gone, or the collection is.
        DatasetError: the server has no change streams, refuses or cannot be reached.
    """
    stage: dict[str, object] = {"fullDocument": "updateLookup"}
    if token is not None:
        stage["resumeAfter"] = {_TOKEN: token}
    name = reads.collection
    request: dict[str, Any] = {
        "aggregate": name, "pipeline": [{"$changeStream": stage}], "cursor": {},
    }  # fmt: skip
    with (
        connecting.connected(reads.login, reads.title) as database,
        database.client.start_session() as session,
    ):
        while True:
            try:
                cursor = database.command(request, session=session, codec_options=connecting.CODEC)[
                    "cursor"
                ]
            except OperationFailure as exc:
                raise _translated(exc, reads.title) from exc
            events = cursor.get("firstBatch") or cursor.get("nextBatch") or []
            after = cursor.get("postBatchResumeToken") or (events[-1]["_id"] if events else None)
            token = str(after[_TOKEN]) if after else token
            if token is None:
                raise _without(reads.title)
            _refuse_end(events, reads.title)
            yield StreamPage(events, token)
            request = {"getMore": Int64(cursor["id"]), "collection": name, "maxTimeMS": _WAIT_MS}


def _refuse_end(events: Sequence[Event], title: str) -> None:
    if any(each["operationType"] in _ENDED for each in events):
        raise PositionLostError(f"{title} was dropped or renamed; reloading")


def _translated(exc: OperationFailure, title: str) -> Exception:
    if exc.code in _LOST:
        return PositionLostError(
            f"{title}: the oplog has no longer the changes after the stored position; reloading"
        )
    return _without(title) if exc.code in _WITHOUT else exc


def _without(title: str) -> DatasetError:
    return DatasetError(
        "unsupported",
        f"{title} cannot be followed: it has no change stream; these need a replica set of "
        "MongoDB 4.4 or later, and no view",
    )
