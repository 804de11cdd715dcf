"""Shards that end, and records that are gone, over a client of the tests: moto has one shard."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError

from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import PositionLostError
from caraway_plugins.changes.dynamodb import shards
from caraway_plugins.changes.dynamodb.positions import StreamPosition, read
from caraway_plugins.changes.dynamodb.shards import TableStream
from caraway_plugins.sources.dynamodb import connecting
from caraway_plugins.sources.dynamodb.connecting import DynamoLogin


class Stream:
    """A stream of two generations of shards."""

    def __init__(self) -> None:
        self.shards: list[dict[str, Any]] = [_shard("a", 1, None)]
        self.records: dict[str, list[int]] = {"a": [1, 2]}
        self.ended: set[str] = set()
        self.trimmed: dict[str, int] = {}
        self.expired: set[str] = set()
        self.asked: list[tuple[str, str]] = []

    def describe_stream(self, **request: Any) -> Mapping[str, Any]:
        names = [each["ShardId"] for each in self.shards]
        start = request.get("ExclusiveStartShardId")
        place = names.index(start) + 1 if start else 0
        page = self.shards[place : place + 1]
        last = {"LastEvaluatedShardId": page[0]["ShardId"]} if place + 1 < len(names) else {}
        return {"StreamDescription": {"Shards": page, **last}}

    def get_shard_iterator(self, **request: Any) -> Mapping[str, Any]:
        shard, kind = request["ShardId"], request["ShardIteratorType"]
        self.asked.append((shard, kind))
        number = int(request.get("SequenceNumber", 0)) + (kind == "AFTER_SEQUENCE_NUMBER")
        if kind != "TRIM_HORIZON" and number < self.trimmed.get(shard, 0):
            raise _error("TrimmedDataAccessException")
        return {"ShardIterator": f"{shard} {number}"}

    def get_records(self, **request: Any) -> Mapping[str, Any]:
        if request["ShardIterator"] in self.expired:
            self.expired.clear()
            raise _error("ExpiredIteratorException")
        shard, _, number = request["ShardIterator"].partition(" ")
        first = max(int(number), self.trimmed.get(shard, 0))
        numbers = [each for each in self.records.get(shard, []) if each >= first]
        records = [{"dynamodb": {"SequenceNumber": str(each)}} for each in numbers]
        following = max([first, *(each + 1 for each in numbers)])
        rest = {} if shard in self.ended else {"NextShardIterator": f"{shard} {following}"}
        return {"Records": records, **rest}


def _shard(name: str, start: int, parent: str | None, end: int | None = None) -> dict[str, Any]:
    numbers = {"StartingSequenceNumber": str(start)}
    return {
        "ShardId": name,
        "SequenceNumberRange": numbers | ({"EndingSequenceNumber": str(end)} if end else {}),
        **({"ParentShardId": parent} if parent else {}),
    }


def _error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": code}}, "GetRecords")


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Stream:
    fake = Stream()
    monkeypatch.setattr(connecting, "client_of", lambda _login, _service: fake)
    return fake


def _reader() -> TableStream:
    return TableStream(DynamoLogin(None, None, 1.0), "arn", "table 't'")


def _numbers(reader: TableStream) -> Sequence[int]:
    return [
        int(record["dynamodb"]["SequenceNumber"])
        for page in reader.pages()
        for record in page.records
    ]


def test_children_come_after_the_records_of_their_parent(stream: Stream) -> None:
    reader = _reader()
    reader.begin()
    assert _numbers(reader) == [1, 2]
    stream.records["a"].append(3)
    stream.ended.add("a")
    assert _numbers(reader) == [3]
    assert reader.position.shards == {"a": ("3", True)}, "its children are not there yet"
    stream.shards = [_shard("a", 1, None, 3), _shard("b", 4, "a"), _shard("c", 5, "a")]
    stream.records |= {"b": [4, 6], "c": [5]}
    assert _numbers(reader) == []
    assert reader.position.shards == {"b": ("4", False), "c": ("5", False)}
    assert _numbers(reader) == [4, 6, 5]
    assert not reader.is_at_end
    for _ in range(shards._QUIET_PAGES):
        assert _numbers(reader) == []
    assert reader.is_at_end


def test_shards_that_ended_before_the_load_are_not_read(stream: Stream) -> None:
    stream.shards = [_shard("a", 1, None, 2), _shard("b", 3, "a")]
    stream.records["b"] = [3]
    reader = _reader()
    reader.begin()
    assert _numbers(reader) == [3]


def test_position_continues_after_its_record(stream: Stream) -> None:
    stream.records["a"] = [1, 2, 3]
    reader = _reader()
    reader.resume(read(StreamPosition("arn", {"a": ("2", True)}).text(), "arn"))
    assert _numbers(reader) == [3]


def test_records_that_are_gone_lose_the_position(stream: Stream) -> None:
    stream.trimmed["a"] = 9
    for place in (("2", True), ("1", False)):
        reader = _reader()
        reader.resume(StreamPosition("arn", {"a": place}))
        with pytest.raises(PositionLostError, match="no longer has the changes"):
            list(reader.pages())


def test_first_records_of_a_load_may_be_gone(stream: Stream) -> None:
    stream.trimmed["a"], stream.records["a"] = 2, [1, 2, 3]
    reader = _reader()
    reader.begin()
    assert _numbers(reader) == [2, 3]
    assert stream.asked == [("a", "AT_SEQUENCE_NUMBER"), ("a", "TRIM_HORIZON")]


def test_iterator_that_expired_is_made_again(stream: Stream) -> None:
    reader = _reader()
    reader.begin()
    assert _numbers(reader) == [1, 2]
    stream.expired.add("a 3")
    stream.records["a"].append(3)
    assert _numbers(reader) == [3]


def test_stream_without_shards_is_tried_again(stream: Stream) -> None:
    stream.shards = []
    with pytest.raises(DatasetError, match="no shards yet"):
        _reader().begin()
