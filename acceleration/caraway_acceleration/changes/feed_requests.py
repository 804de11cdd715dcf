"""Requests with changes that wait for a feed, and which of them a version of the dataset takes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from caraway_acceleration.changes.ingesting import (
    BaseWithLog,
    ChangesRefusedError,
    SourcePositions,
    StreamStoppedError,
)
from caraway_acceleration.versions.version import DatasetVersion
from caraway_core.changes import Changes
from caraway_core.errors import CarawayError, MovedOnError
from caraway_core.ids import TableName


@dataclass(slots=True)
class FeedRequest:
    """A request with changes that waits for its result."""

    changes: Changes
    request_id: str | None
    source: SourcePositions | None
    upon: BaseWithLog | None
    applied: "asyncio.Future[int]" = field(compare=False)
    has_begun: bool = False
    is_embedded: bool = False


def made_upon(
    requests: Sequence[FeedRequest], standing: DatasetVersion, name: TableName
) -> list[FeedRequest]:
    """Reject changes that were made from a state other than the current one."""
    state = BaseWithLog(standing.key, standing.read_log)
    good: list[FeedRequest] = []
    for each in requests:
        if each.upon is not None and (good or each.upon != state):
            fail(each, MovedOnError(f"dataset '{name}' was changed in the meantime"))
        else:
            good.append(each)
    return good


def in_order(
    requests: Sequence[FeedRequest], standing: DatasetVersion, name: TableName
) -> list[FeedRequest]:
    """Reject batches of a source that do not continue from the dataset's position.

    Another scheduler may have advanced the dataset since they were read. So no change is applied
    twice or skipped.
    """
    position, good = standing.position, []
    for each in requests:
        if each.source is not None:
            if (each.source.after or "") != position:
                message = (
                    f"dataset '{name}' has advanced; its source is read again from its position"
                )
                fail(each, ChangesRefusedError(message))
                continue
            position = each.source.position
        good.append(each)
    return good if is_whole(good, standing) else _of_sources(good, name)


def is_whole(requests: Sequence[FeedRequest], standing: DatasetVersion) -> bool:
    """Return whether statements read these changes at once, because no load is in progress."""
    last = [each.source for each in requests if each.source is not None][-1:]
    return last[0].is_whole if last else not standing.pending


def _of_sources(requests: Sequence[FeedRequest], name: TableName) -> list[FeedRequest]:
    """Reject changes of clients during a load: statements could not read them before its end."""
    for each in requests:
        if each.source is None:
            message = f"dataset '{name}' is being loaded from its source; send the changes later"
            fail(each, StreamStoppedError(message))
    return [each for each in requests if each.source is not None]


def fail(request: FeedRequest, exc: CarawayError) -> None:
    """Answer a request with an error, unless it has its answer."""
    if not request.applied.done():
        request.applied.set_exception(exc)
