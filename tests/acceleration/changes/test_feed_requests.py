"""Requests with changes: those that a version takes, and the errors of the others."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from caraway_acceleration.changes import feed_requests
from caraway_acceleration.changes.feed_requests import FeedRequest
from caraway_acceleration.changes.ingesting import (
    BaseWithLog,
    ChangesRefusedError,
    SourcePositions,
    StreamStoppedError,
)
from caraway_acceleration.versions.version import DatasetVersion, VersionPart
from caraway_core.changes import Changes, LogEntry
from caraway_core.errors import MovedOnError
from caraway_core.ids import TableName
from caraway_core.protocols.results import ChunkInfo

NAME = TableName("t")
SCHEMA = pa.schema([("v", pa.int64())])
STANDING = DatasetVersion(
    3, (VersionPart("base", SCHEMA, ()),), "", datetime.now(UTC), "", "", position="p1"
)


def request(source: SourcePositions | None = None, upon: BaseWithLog | None = None) -> FeedRequest:
    applied = asyncio.get_running_loop().create_future()
    return FeedRequest(Changes(SCHEMA.empty_table(), 0), None, source, upon, applied)


def from_(after: str | None, position: str, *, is_whole: bool = True) -> FeedRequest:
    return request(SourcePositions(after, position, is_whole))


async def test_changes_made_from_the_current_state_count_alone() -> None:
    state = BaseWithLog("base", STANDING.read_log)
    first, second, plain = request(upon=state), request(upon=state), request()
    assert feed_requests.made_upon([first, second, plain], STANDING, NAME) == [first, plain]
    assert not first.applied.done() and not plain.applied.done()
    with pytest.raises(MovedOnError, match="'t' was changed in the meantime"):
        await second.applied


async def test_changes_made_from_another_state_or_after_others_are_refused() -> None:
    state = BaseWithLog("base", STANDING.read_log)
    entry = LogEntry(ChunkInfo(0, 1, 1, "a"), 0)
    for upon in (BaseWithLog("other", ()), BaseWithLog("base", (entry,))):
        made = request(upon=upon)
        assert feed_requests.made_upon([made], STANDING, NAME) == []
        assert isinstance(made.applied.exception(), MovedOnError)
    late = request(upon=state)
    assert feed_requests.made_upon([request(), late], STANDING, NAME)[1:] == []
    assert isinstance(late.applied.exception(), MovedOnError)
    assert feed_requests.made_upon([], STANDING, NAME) == []


async def test_batches_of_a_source_continue_one_another_from_the_position() -> None:
    first, second, other = from_("p1", "p2"), from_("p2", "p3"), request()
    assert feed_requests.in_order([first, other, second], STANDING, NAME) == [first, other, second]


async def test_no_batch_is_applied_twice_or_skipped() -> None:
    again, ahead, first, repeated = (
        from_("p0", "p1"), from_("p2", "p3"), from_("p1", "p2"), from_("p1", "p2")
    )  # fmt: skip
    given = [again, ahead, first, repeated]
    assert feed_requests.in_order(given, STANDING, NAME) == [first]
    for refused in (again, ahead, repeated):
        with pytest.raises(ChangesRefusedError, match="read again from its position"):
            await refused.applied


async def test_first_batch_of_a_new_dataset_has_no_position_before() -> None:
    new = replace(STANDING, position="")
    first = from_(None, "p1")
    assert feed_requests.in_order([first], new, NAME) == [first]
    late = from_(None, "p1")
    assert feed_requests.in_order([late], STANDING, NAME) == []
    assert late.applied.exception() is not None


async def test_clients_cannot_change_a_dataset_that_is_being_loaded() -> None:
    loading = replace(STANDING, pending=2)
    batch, client = from_("p1", "p2", is_whole=False), request()
    assert feed_requests.in_order([client, batch], loading, NAME) == [batch]
    with pytest.raises(StreamStoppedError, match="send the changes later"):
        await client.applied
    alone = request()
    assert feed_requests.in_order([alone], loading, NAME) == []
    assert isinstance(alone.applied.exception(), StreamStoppedError)


async def test_last_batch_of_a_load_lets_clients_in() -> None:
    loading = replace(STANDING, pending=2)
    end, client = from_("p1", "p2", is_whole=True), request()
    assert feed_requests.in_order([end, client], loading, NAME) == [end, client]
    begin = from_("p1", "p2", is_whole=False)
    assert not feed_requests.is_whole([begin], STANDING)
    assert feed_requests.is_whole([], STANDING) and not feed_requests.is_whole([], loading)


async def test_answer_that_was_given_or_left_stays() -> None:
    answered, left = request(), request()
    answered.applied.set_result(7)
    left.applied.cancel()
    for each in (answered, left):
        feed_requests.fail(each, ChangesRefusedError("late"))
    assert answered.applied.result() == 7 and left.applied.cancelled()
