"""A statement runs again if its engine ends before the first row, and never after it."""

from collections.abc import AsyncIterator

import pyarrow as pa
import pytest

from caraway_core.errors import (
    AnswerCutError,
    CarawayError,
    ExecutionError,
    OutOfMemoryQueryError,
    ShuttingDownError,
)
from caraway_core.ids import TableName
from caraway_executor.engines.causes import Cause, EngineLostError, EngineMovedError
from caraway_executor.engines.rerunning import RerunStream
from tests.kit.stream_double import StreamDouble

SCHEMA = pa.schema([("n", pa.int64())])


class _Stream(StreamDouble):
    """Gives batches of one number each, and then an error or the end."""

    reads_only_catalog = True

    def __init__(
        self,
        *numbers: int,
        error: Exception | None = None,
        written: TableName | None = None,
        schema: pa.Schema = SCHEMA,
    ) -> None:
        self.schema = schema
        self.written = written
        self.is_closed = False
        self._numbers = list(numbers)
        self._error = error

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if self._numbers:
            return pa.record_batch([pa.array([self._numbers.pop(0)], pa.int64())], schema=SCHEMA)
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.is_closed = True


class _Run:
    """A statement whose streams are given one after the other."""

    def __init__(
        self,
        first: _Stream,
        *others: _Stream | Exception,
        has_names: bool = True,
        committed: int | Exception | None = None,
    ) -> None:
        self._committed = committed
        self._others = list(others)
        self.runs = 1
        self.ends: list[bool] = []
        self.stream = RerunStream(
            first, self._again, self._end, has_names=has_names, find_commit=self._find
        )

    async def _find(self, table: TableName, mark: str) -> int | None:
        assert (table, mark) == ("t", "m")
        if isinstance(self._committed, Exception):
            raise self._committed
        return self._committed

    async def _again(self, lost: EngineLostError) -> _Stream:
        self.runs += 1
        assert isinstance(lost, EngineLostError)
        other = self._others.pop(0)
        if isinstance(other, Exception):
            raise other
        return other

    def _end(self, *, is_whole: bool) -> None:
        self.ends.append(is_whole)

    async def numbers(self) -> list[int]:
        return [n async for batch in self.stream for n in batch.column("n").to_pylist()]


def _lost(cause: Cause = Cause.CRASH) -> EngineLostError:
    return EngineLostError(cause, "it used 2 GiB")


def _lost_write(cause: Cause = Cause.KILLED) -> _Stream:
    return _Stream(error=EngineLostError(cause, "", "m"), written=TableName("t"))


@pytest.mark.parametrize("count", [0, 7])
async def test_a_write_whose_commit_is_there_has_its_result(count: int) -> None:
    run = _Run(_lost_write(), committed=count)
    assert await run.numbers() == [count]
    assert (run.runs, run.ends) == (1, [True])


@pytest.mark.parametrize(
    ("committed", "cause", "says"),
    [
        (None, Cause.KILLED, "it was killed; no row was written so far, but a catalog may"),
        (None, Cause.MEMORY, "no row was written so far"),
        (ExecutionError("away"), Cause.KILLED, "look before you run it again"),
        (7, Cause.CLOSED, "look before you run it again"),
    ],
)
async def test_a_write_without_a_commit_says_what_is_known(
    committed: int | Exception | None, cause: Cause, says: str
) -> None:
    run = _Run(_lost_write(cause), committed=committed)
    with pytest.raises(CarawayError, match=says):
        await run.numbers()
    assert (run.runs, run.ends) == (1, [False])


async def test_nothing_is_run_again_without_need() -> None:
    run = _Run(_Stream(1, 2))
    assert await run.numbers() == [1, 2]
    assert (run.runs, run.ends) == (1, [True])


@pytest.mark.parametrize("cause", [Cause.CRASH, Cause.MEMORY, Cause.HUNG, Cause.KILLED])
async def test_before_the_first_row_it_runs_once_more(cause: Cause) -> None:
    second = _Stream(1, 2)
    run = _Run(_Stream(error=_lost(cause)), second)
    run.stream.traits.takes_plain = run.stream.traits.takes_uncut = True
    assert await run.numbers() == [1, 2]
    assert (run.runs, run.ends) == (2, [True])
    assert second.traits.takes_plain and second.traits.takes_uncut
    assert run.stream.traits is second.traits


async def test_what_only_waited_behind_others_moves_as_often_as_needed() -> None:
    streams = [_Stream(error=EngineMovedError()), _Stream(error=_lost()), _Stream(1, 2)]
    run = _Run(_Stream(error=EngineMovedError()), *streams)
    assert await run.numbers() == [1, 2]
    assert (run.runs, run.ends) == (4, [True])


@pytest.mark.parametrize(
    ("first", "others", "kind", "says", "runs"),
    [
        (_Stream(1, error=_lost()), (), AnswerCutError, "while the result was read", 1),
        (_Stream(1, error=_lost(Cause.MEMORY)), (), OutOfMemoryQueryError, "it used 2 GiB", 1),
        (_Stream(error=_lost(Cause.CLOSED)), (), ShuttingDownError, "was ended", 1),
        (
            _Stream(error=_lost(), written=TableName("t")),
            (),
            ExecutionError,
            "look before you run it again",
            1,
        ),
        (
            _Stream(1, error=_lost(), written=TableName("t")),
            (),
            ExecutionError,
            "look before you run it again",
            1,
        ),
        (
            _Stream(error=_lost()),
            (_Stream(error=_lost(Cause.HUNG)),),
            ExecutionError,
            "did not stop cancelled work",
            2,
        ),
        (_Stream(error=_lost()), (_lost(Cause.MEMORY),), OutOfMemoryQueryError, "2 GiB", 2),
        (_Stream(error=_lost()), (_Stream(1, error=_lost()),), AnswerCutError, "was read", 2),
        (_Stream(error=_lost()), (ExecutionError("other"),), ExecutionError, "other", 2),
        (_Stream(error=ExecutionError("mine")), (), ExecutionError, "mine", 1),
    ],
)
async def test_what_ends_a_statement_is_said_once(
    first: _Stream,
    others: tuple[_Stream | Exception, ...],
    kind: type[CarawayError],
    says: str,
    runs: int,
) -> None:
    run = _Run(first, *others)
    with pytest.raises(kind, match=says):
        await run.numbers()
    assert (run.runs, run.ends) == (runs, [False])


async def test_rows_of_another_schema_are_not_given() -> None:
    other = _Stream(1, schema=pa.schema([("m", pa.int64())]))
    run = _Run(_Stream(error=_lost()), other)
    with pytest.raises(AnswerCutError, match="the catalog changed"):
        await run.numbers()
    assert other.is_closed and run.ends == [False]


async def test_a_closed_stream_ends_once_and_does_not_run_again() -> None:
    first = _Stream(1, 2)
    run = _Run(first)
    await anext(run.stream)
    await run.stream.aclose()
    await run.stream.aclose()
    assert first.is_closed and run.ends == [False] and run.runs == 1
    assert run.stream.traits is first.traits


async def test_columns_of_tasks_are_compared_by_their_types() -> None:
    other, text = pa.schema([("m", pa.int64())]), pa.schema([("n", pa.string())])
    for schema, is_same in ((other, True), (text, False)):
        second = _Stream(1, schema=schema)
        run = _Run(_Stream(error=_lost()), second, has_names=False)
        if is_same:
            assert await run.numbers() == [1]
        else:
            with pytest.raises(AnswerCutError, match="catalog changed"):
                await run.numbers()
            assert second.is_closed
