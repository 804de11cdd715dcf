"""Statements whose rows executors store: reports on the way, and the rest of a failure."""

from collections.abc import AsyncIterator, Sequence
from typing import cast

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName, new_query_id
from caraway_core.protocols import storing as stored
from caraway_core.protocols.dispatch import BatchStream, Dispatch
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.storing import StoredChunk
from caraway_core.statements import Statement
from caraway_scheduler.queries import storing
from tests.kit.stream_double import StreamDouble

ROWS = pa.schema([("a", pa.int64())])


class _Words(StreamDouble):
    """The words of executors about stored chunks; an exception among them is raised."""

    reads_only_catalog = True

    def __init__(
        self, *words: Sequence[StoredChunk] | Exception, written: TableName | None = None
    ) -> None:
        self._words = words
        self.written = written
        self.schema = stored.stored_schema(ROWS)
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        for each in self._words:
            if isinstance(each, Exception):
                raise each
            yield stored.pack(each, self.schema)

    async def aclose(self) -> None:
        self.is_closed = True


def chunk(task: int, attempt: int, index: int) -> StoredChunk:
    return StoredChunk(task, attempt, ChunkInfo(index, 10, 100, f"{task}{attempt}{index}"))


class _Dispatch:
    def __init__(self, stream: _Words) -> None:
        self._stream = stream

    async def execute(self, *_: object) -> BatchStream:
        return cast(BatchStream, self._stream)


async def store(
    stream: _Words, seen: list[int], written: list[bool] | None = None
) -> storing.StoredAnswer:
    return await storing.store(
        cast(Dispatch, _Dispatch(stream)),
        new_query_id(),
        Statement("SELECT 1", {}),
        lambda words: seen.append(len(words)),
        lambda: (written if written is not None else []).append(True),
    )


async def test_chunks_come_in_the_order_of_the_rows() -> None:
    seen: list[int] = []
    stream = _Words([chunk(1, 0, 1), chunk(1, 0, 0)], [], [chunk(0, 0, 0)])
    answer = await store(stream, seen)
    assert answer.schema == ROWS
    assert [each.checksum for each in answer.chunks] == ["000", "100", "101"]
    assert seen == [0, 2, 2, 3], "the first word is that it has begun"
    assert stream.is_closed


async def test_only_the_last_attempt_of_a_task_counts() -> None:
    words = [chunk(0, 0, 0), stored.begun(0, 1), chunk(0, 1, 0), chunk(0, 0, 1)]
    answer = await store(_Words(words, [stored.read_so_far(0, 1, 99)]), [])
    assert [each.checksum for each in answer.chunks] == ["010"]


async def test_answer_without_rows_has_its_schema() -> None:
    answer = await store(_Words(), [])
    assert (answer.schema, answer.chunks) == (ROWS, ())


@pytest.mark.parametrize("written", [None, TableName("t")])
async def test_failure_closes_the_stream_and_says_that_rows_may_be_written(
    written: TableName | None,
) -> None:
    seen, noted = list[int](), list[bool]()
    stream = _Words([chunk(0, 0, 0)], ExecutionError("full disk"), written=written)
    with pytest.raises(ExecutionError, match="full disk"):
        await store(stream, seen, noted)
    assert stream.is_closed and seen == [0, 1]
    assert noted == ([True] if written else [])


async def test_caller_that_fails_ends_the_statement() -> None:
    stream = _Words([chunk(0, 0, 0)])

    def fails(words: list[StoredChunk]) -> None:
        if words:
            raise ValueError("no longer the owner")

    with pytest.raises(ValueError, match="owner"):
        await storing.store(
            cast(Dispatch, _Dispatch(stream)), new_query_id(), Statement("SELECT 1", {}), fails
        )
    assert stream.is_closed
