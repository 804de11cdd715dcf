"""The shards of the stream of a table, each read from a place on. Methods block."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import PositionLostError
from caraway_plugins.changes.dynamodb.positions import Place, StreamPosition
from caraway_plugins.sources.dynamodb import connecting
from caraway_plugins.sources.dynamodb.connecting import DynamoLogin

_PAGE = 1_000
_QUIET_PAGES = 3
_GONE = ("TrimmedDataAccessException", "ResourceNotFoundException")
_EXPIRED = "ExpiredIteratorException"


@dataclass(frozen=True, slots=True)
class ShardPage:
    """Records in order, and the position after them."""

    records: Sequence[Mapping[str, Any]]
    position: StreamPosition

    @property
    def made_at(self) -> datetime | None:
        """When the last record was made."""
        if not self.records:
            return None
        moment: datetime | None = self.records[-1]["dynamodb"].get("ApproximateCreationDateTime")
        return moment


class TableStream:
    """Reads the stream of a table. The children of a shard come after all of its records."""

    def __init__(self, login: DynamoLogin, stream: str, title: str) -> None:
        self._client = connecting.client_of(login, "dynamodbstreams")
        self._stream, self._title = stream, title
        self._places: dict[str, Place] = {}
        self._iterators: dict[str, str] = {}
        self._quiet: dict[str, int] = {}
        self._is_loading = False

    def begin(self) -> StreamPosition:
        """Begin with the shards that are open now, as all older changes are in the items.

        Raises:
            DatasetError: the stream has no shards yet, or cannot be read.
        """
        shards = [each for each in self._shards() if not _end_of(each)]
        if not shards:
            raise DatasetError(
                "unavailable", f"{self._title}: its stream has no shards yet; it is tried again"
            )
        self._places = {each["ShardId"]: (_start_of(each), False) for each in shards}
        self._is_loading = True
        return self.position

    def resume(self, position: StreamPosition) -> None:
        """Continue at a position."""
        self._places = dict(position.shards)

    def complete(self) -> None:
        """Note that all rows are read that the dataset had before."""
        self._is_loading = False

    @property
    def position(self) -> StreamPosition:
        """The position after all records that were read."""
        return StreamPosition(self._stream, dict(self._places), self._is_loading)

    @property
    def is_at_end(self) -> bool:
        """True if no shard has had records for some pages."""
        return all(self._quiet.get(shard, 0) >= _QUIET_PAGES for shard in self._places)

    def pages(self) -> Iterator[ShardPage]:
        """Read one page of each shard.

        Raises:
            PositionLostError: records after the position are gone.
            DatasetError: the stream cannot be read.
        """
        for shard in list(self._places):
            records = self._records(shard)
            self._quiet[shard] = 0 if records else self._quiet.get(shard, 0) + 1
            if records:
                self._places[shard] = (records[-1]["dynamodb"]["SequenceNumber"], True)
            if shard not in self._iterators:
                self._end(shard)
            yield ShardPage(records, self.position)

    def _records(self, shard: str) -> Sequence[Mapping[str, Any]]:
        iterator = self._iterators.pop(shard, None) or self._iterator(shard)
        try:
            answer = self._call("get_records", ShardIterator=iterator, Limit=_PAGE)
        except _ExpiredError:
            answer = self._call("get_records", ShardIterator=self._iterator(shard), Limit=_PAGE)
        following = answer.get("NextShardIterator")
        if following:
            self._iterators[shard] = following
        records: Sequence[Mapping[str, object]] = answer["Records"]
        return records

    def _iterator(self, shard: str) -> str:
        number, is_read = self._places[shard]
        kind = "AFTER_SEQUENCE_NUMBER" if is_read else "AT_SEQUENCE_NUMBER"
        request = {"StreamArn": self._stream, "ShardId": shard}
        try:
            answer = self._call(
                "get_shard_iterator", **request, ShardIteratorType=kind, SequenceNumber=number
            )
        except PositionLostError:
            if is_read or not self._is_loading:
                raise
            # What is gone from the first shards was in the items that are loaded.
            answer = self._call("get_shard_iterator", **request, ShardIteratorType="TRIM_HORIZON")
        iterator: str = answer["ShardIterator"]
        return iterator

    def _end(self, shard: str) -> None:
        """Go on with the children of a shard that has ended, as soon as the stream has them."""
        children = [each for each in self._shards() if each.get("ParentShardId") == shard]
        if not children:
            return
        del self._places[shard]
        self._quiet.pop(shard, None)
        self._places |= {each["ShardId"]: (_start_of(each), False) for each in children}

    def _shards(self) -> Sequence[Mapping[str, Any]]:
        shards: list[Mapping[str, object]] = []
        request = {"StreamArn": self._stream}
        while True:
            described = self._call("describe_stream", **request)["StreamDescription"]
            shards += described["Shards"]
            last = described.get("LastEvaluatedShardId")
            if not last:
                return shards
            request["ExclusiveStartShardId"] = last

    def _call(self, operation: str, **request: object) -> Any:
        try:
            return connecting.call(self._client, operation, self._title, **request)
        except DatasetError as exc:
            response = getattr(exc.__cause__, "response", None) or {}
            code = response.get("Error", {}).get("Code")
            if code == _EXPIRED:
                raise _ExpiredError from exc
            if code in _GONE:
                raise PositionLostError(
                    f"{self._title}: its stream no longer has the changes after the stored "
                    "position; reloading"
                ) from exc
            raise


class _ExpiredError(Exception):
    """An iterator was not used for too long."""


def _start_of(shard: Mapping[str, Any]) -> str:
    return str(shard["SequenceNumberRange"]["StartingSequenceNumber"])


def _end_of(shard: Mapping[str, Any]) -> str | None:
    end: str | None = shard["SequenceNumberRange"].get("EndingSequenceNumber")
    return end
