"""Batch calls run in threads, one batch at a time, and end when their callers are gone."""

import asyncio
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError, InvalidQueryError
from caraway_engine.remote.calls import CallStream
from tests.kit.deadlines import eventually


def batch(number: int) -> pa.RecordBatch:
    return pa.record_batch({"n": [number]})


async def numbers(stream: CallStream) -> list[int]:
    found = []
    while (each := await anext(stream, None)) is not None:
        found.append(each.to_pyarrow().column(0)[0].as_py())
    return found


async def test_a_call_begins_with_the_first_batch_that_is_asked_for() -> None:
    begun: list[int] = []

    def call() -> Iterator[pa.RecordBatch]:
        begun.append(threading.get_ident())
        return iter([batch(1), batch(2)])

    stream = CallStream(call)
    await asyncio.sleep(0)
    assert begun == []
    assert await numbers(stream) == [1, 2]
    assert len(begun) == 1
    assert begun[0] != threading.get_ident()
    assert await numbers(stream) == []


async def test_a_call_without_batches_is_no_rows() -> None:
    assert await numbers(CallStream(lambda: iter(()))) == []


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (InvalidQueryError("no such column"), InvalidQueryError, "no such column"),
        (ExecutionError("away"), ExecutionError, "away"),
        (ValueError("Error during planning: x"), ExecutionError,
         "a batch call failed with ValueError: Error during planning: x"),
        (KeyError("k"), ExecutionError, "a batch call failed with KeyError: 'k'"),
        (MemoryError(), ExecutionError, "a batch call failed with MemoryError"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("at", [0, 2])
async def test_a_failure_says_that_it_is_of_the_call(
    error: Exception, kind: type[Exception], words: str, at: int
) -> None:
    def call() -> Iterator[pa.RecordBatch]:
        for number in range(at):
            yield batch(number)
        raise error

    stream = CallStream(call)
    for number in range(at):
        assert (await anext(stream)).to_pyarrow() == batch(number)
    with pytest.raises(kind) as caught:
        await anext(stream)
    assert words in str(caught.value)


async def test_a_failure_to_begin_is_one_of_the_call() -> None:
    def call() -> Iterator[pa.RecordBatch]:
        raise ZeroDivisionError("by zero")

    with pytest.raises(ExecutionError, match="a batch call failed with ZeroDivisionError: by zero"):
        await anext(CallStream(call))


async def test_a_call_that_is_left_ends_after_its_batch() -> None:
    goes_on, ended = threading.Event(), threading.Event()

    def call() -> Iterator[pa.RecordBatch]:
        try:
            yield batch(1)
            goes_on.wait()
            yield batch(2)
            raise AssertionError("nobody asks for a third batch")
        finally:
            ended.set()

    stream = CallStream(call)
    await anext(stream)
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    stream.close()
    assert not ended.is_set()
    goes_on.set()
    await asyncio.gather(waiting, return_exceptions=True)

    async def is_ended() -> bool:
        return ended.is_set()

    await eventually(is_ended, "the call ends")
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_a_call_that_is_closed_before_its_begin_never_begins() -> None:
    begun = threading.Event()

    def call() -> Iterator[pa.RecordBatch]:
        begun.set()
        return iter(())

    stream = CallStream(call)
    stream._reading.close()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert not begun.is_set()
