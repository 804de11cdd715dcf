"""A stream of the engine: its batches, its end, and the translation of its errors."""

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import ExecutionError, QueryError
from caraway_core.ids import TableName
from caraway_engine.execution import streams
from caraway_engine.execution.streams import EngineStream, OwnStream, StartedPlan
from caraway_engine.statements.statements import Effect

SHORT = Exception("Resources exhausted: Failed to allocate additional 1 MB")


class Batch:
    def __init__(self, value: int) -> None:
        self._value = value

    def to_pyarrow(self) -> pa.RecordBatch:
        return pa.record_batch({"a": [self._value]})


class Given(OwnStream):
    """Returns the given batches, and raises the given exceptions."""

    def __init__(self, *steps: Any) -> None:
        self._steps = list(steps)
        self.closed = 0

    async def __anext__(self) -> Any:
        if not self._steps:
            raise StopAsyncIteration
        step = self._steps.pop(0)
        if isinstance(step, BaseException):
            raise step
        return Batch(step)

    def close(self) -> None:
        self.closed += 1


def translate(exc: BaseException, *, planning: bool = False) -> QueryError:
    return ExecutionError(f"translated: {exc}")


def made(stream: Any, start_again: Callable[[], Any] | None = None, **more: Any) -> EngineStream:
    effect = Effect(TableName("t"), False)
    started = StartedPlan(
        stream, pa.schema([]), effect, holds="rows", start_again=start_again, **more
    )
    return EngineStream(started, translate)


async def all_of(stream: EngineStream) -> list[int]:
    return [batch["a"][0].as_py() async for batch in stream]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_DELAYS", Delays(0.0, 0.0))


def ends_of(stream: EngineStream) -> list[bool]:
    found: list[bool] = []
    stream.on_end = found.append
    return found


async def test_a_stream_read_to_its_end_tells_so_once() -> None:
    own = Given(1, 2)
    stream = made(own)
    ends = ends_of(stream)
    assert await all_of(stream) == [1, 2]
    assert (ends, own.closed) == ([True], 1)
    await stream.aclose()
    assert await all_of(stream) == [] and ends == [True]
    assert (stream.written, stream.reads_only_catalog) == ("t", False)


async def test_a_stream_that_is_closed_or_forgotten_was_not_read_to_its_end() -> None:
    own = Given(1, 2)
    stream = made(own)
    ends = ends_of(stream)
    assert (await anext(stream))["a"].to_pylist() == [1]
    await stream.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert (ends, own.closed) == ([False], 1)
    other = Given(1)
    forgotten = made(other)
    ends = ends_of(forgotten)
    del forgotten
    assert (ends, other.closed) == ([False], 1)


async def test_an_error_is_translated_and_ends_the_stream() -> None:
    cause = ValueError("inside of the engine")
    own = Given(1, cause)
    stream = made(own)
    ends = ends_of(stream)
    assert (await anext(stream))["a"].to_pylist() == [1]
    with pytest.raises(ExecutionError, match="translated: inside of the engine") as raised:
        await anext(stream)
    assert raised.value.__cause__ is cause
    assert (ends, own.closed) == ([True], 1), "a failed statement is over"
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


@pytest.mark.parametrize("last", [StopAsyncIteration(), ValueError("no")])
async def test_an_exception_that_the_engine_keeps_holds_nothing(last: Exception) -> None:
    """Native code may let go of an exception only at its next call."""
    stream = made(Given(1, last))
    gone = weakref.ref(stream)
    if isinstance(last, StopAsyncIteration):
        assert await all_of(stream) == [1]
    else:
        with pytest.raises(ExecutionError, match="translated: no"):
            await all_of(stream)
    del stream
    gc.collect()
    assert gone() is None and last is not None


async def test_a_wait_that_is_cancelled_stays_cancelled() -> None:
    own = Given(asyncio.CancelledError())
    stream = made(own)
    ends = ends_of(stream)
    with pytest.raises(asyncio.CancelledError):
        await anext(stream)
    assert (ends, own.closed) == ([False], 1)


async def test_short_of_memory_before_the_first_batch_it_begins_again() -> None:
    tries: list[int] = []

    def again() -> Given:
        tries.append(1)
        return Given(7, 8)

    stream = made(Given(SHORT), again)
    assert await all_of(stream) == [7, 8]
    assert len(tries) == 1


async def test_it_begins_again_twice_at_most() -> None:
    tries: list[int] = []

    def again() -> Given:
        tries.append(1)
        return Given(SHORT)

    with pytest.raises(ExecutionError, match="Resources exhausted"):
        await all_of(made(Given(SHORT), again))
    assert len(tries) == 2


@pytest.mark.parametrize(
    "steps", [(1, SHORT), (ValueError("not of memory"),), (asyncio.CancelledError(),)]
)
async def test_it_does_not_begin_again_after_rows_or_another_error(steps: tuple[Any, ...]) -> None:
    def again() -> Given:
        raise AssertionError("rows would come twice")

    with pytest.raises((ExecutionError, asyncio.CancelledError)):
        await all_of(made(Given(*steps), again))


async def test_without_another_way_memory_is_an_error() -> None:
    with pytest.raises(ExecutionError, match="Resources exhausted"):
        await all_of(made(Given(SHORT)))


async def test_an_error_of_another_kind_ends_the_second_try() -> None:
    with pytest.raises(ExecutionError, match="file is gone"):
        await all_of(made(Given(SHORT), lambda: Given(ValueError("file is gone"))))


def test_each_operator_has_its_place_and_sums_of_all_partitions() -> None:
    context = SessionContext()
    rows = pa.table({"k": [number % 3 for number in range(900)]})
    context.register_record_batches("t", [rows.to_batches(100), rows.to_batches(100)])
    dataframe = context.sql("SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY n")
    assert sum(len(batch.to_pyarrow()) for batch in dataframe.execute_stream()) == 3

    found = streams.operators(dataframe.execution_plan())

    assert [each.depth for each in found] == list(range(len(found))), "a chain has one child each"
    partial = next(each for each in found if "mode=Partial" in each.text)
    assert partial.metrics["output_rows"] == 3 * 2, "two partitions with three groups each"
    assert partial.metrics["elapsed_compute"] > 0
    assert all(isinstance(value, int) for each in found for value in each.metrics.values())


def test_long_texts_of_operators_are_cut() -> None:
    context = SessionContext()
    columns = ", ".join(f"{number} AS c{number}" for number in range(200))
    dataframe = context.sql(f"SELECT {columns}")
    assert all(len(each.text) <= 160 for each in streams.operators(dataframe.execution_plan()))
