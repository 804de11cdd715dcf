"""Uploads: the memory that they share, and streams that are too large or break."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import QueryCancelledError
from caraway_gateway.flight import uploads
from caraway_gateway.flight.uploads import UploadRoom
from caraway_serving.flight import statuses

SCHEMA = pa.schema([("id", pa.int64())])
BATCH = pa.record_batch({"id": pa.array(range(100), pa.int64())})
BYTES = BATCH.nbytes


@dataclass
class Upload:
    """A call with batches; an exception among them is raised."""

    parts: list[Any]
    is_gone: bool = False
    taken: list[int] = field(default_factory=list)

    @property
    def schema(self) -> pa.Schema:
        return SCHEMA

    def is_cancelled(self) -> bool:
        return self.is_gone

    def __iter__(self) -> Iterator[Any]:
        for each in self.parts:
            if isinstance(each, Exception):
                raise each
            yield SimpleNamespace(data=each)

    def read(
        self,
        most: int = 10**9,
        most_message: int = 10**9,
        take: Callable[[int], None] | None = None,
    ) -> pa.Table:
        call: Any = self
        return uploads.collected(call, call, most, most_message, take or self.taken.append)


def test_rows_are_read_to_the_end() -> None:
    upload = Upload([BATCH, None, BATCH])
    assert upload.read().num_rows == 200
    assert upload.taken == [BYTES, BYTES]
    assert Upload([]).read().schema == SCHEMA


def test_limits_are_inclusive() -> None:
    assert Upload([BATCH, BATCH]).read(2 * BYTES, BYTES).num_rows == 200
    with pytest.raises(statuses.InvalidArgument, match="may hold at most"):
        Upload([BATCH, BATCH]).read(2 * BYTES - 1)
    with pytest.raises(statuses.InvalidArgument, match=f"holds more than {BYTES - 1} bytes"):
        Upload([BATCH]).read(most_message=BYTES - 1)


@pytest.mark.parametrize("error", [pa.ArrowInvalid("bad"), OSError("cut"), ValueError("bad")])
def test_streams_that_are_none(error: Exception) -> None:
    with pytest.raises(statuses.InvalidArgument, match="the rows cannot be read"):
        Upload([BATCH, error]).read()


@pytest.mark.parametrize("parts", [[BATCH], [BATCH, pa.ArrowInvalid("cut")], []])
def test_a_client_that_went_away_wrote_nothing(parts: list[Any]) -> None:
    with pytest.raises(QueryCancelledError, match="nothing is written"):
        Upload(parts, is_gone=True).read()


def test_columns_are_refused_before_rows() -> None:
    call: Any = Upload([ValueError("never read")])

    def refuse(schema: pa.Schema) -> None:
        raise statuses.NotFound(f"no column {schema.names}")

    with pytest.raises(statuses.NotFound, match="no column"):
        list(uploads.received(call, call, 9, 9, lambda _: None, refuse))


def test_uploads_share_memory_until_they_end() -> None:
    room = UploadRoom(10)
    with room.share() as one:
        one(6)
        with room.share() as two:
            two(4)
            with pytest.raises(statuses.Unavailable, match="try again in a moment"):
                two(1)
        one(4)
        with room.share() as two, pytest.raises(statuses.Unavailable):
            two(1)
    with room.share() as one:
        one(10)


def test_an_upload_that_fails_gives_its_memory_back() -> None:
    room = UploadRoom(BYTES)
    for _ in range(3):
        with pytest.raises(statuses.Unavailable), room.share() as take:
            Upload([BATCH, BATCH]).read(take=take)
    with room.share() as take:
        assert Upload([BATCH]).read(take=take).num_rows == 100


def test_rows_without_memory_are_too_large_if_there_is_memory_for_others() -> None:
    too_large = statuses.InvalidArgument("too large")
    assert uploads.without_memory(1, too_large) is too_large
