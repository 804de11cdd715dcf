"""Wrapped dispatches and streams pass on the methods that they do not change."""

import inspect
from collections.abc import AsyncIterator
from typing import Any, cast

import pyarrow as pa
import pytest

from caraway_core.protocols.dispatch import BatchStream, Dispatch
from caraway_scheduler.dispatch.wrappers.wrapping import WrappedDispatch, WrappedStream
from tests.kit.stream_double import StreamDouble

METHODS = [name for name, each in inspect.getmembers(Dispatch) if callable(each) and name[0] != "_"]


def test_every_method_of_a_dispatch_is_wrapped() -> None:
    assert METHODS
    assert set(METHODS) <= set(vars(WrappedDispatch))


@pytest.mark.parametrize("name", METHODS)
async def test_calls_are_passed_on(name: str) -> None:
    calls: list[tuple[object, ...]] = []
    is_async = inspect.iscoroutinefunction(getattr(Dispatch, name))

    def called(*arguments: object) -> object:
        calls.append(arguments)
        return "answer"

    async def called_later(*arguments: object) -> object:
        return called(*arguments)

    inner: Any = type("Inner", (), {})()
    setattr(inner, name, called_later if is_async else called)
    count = len(inspect.signature(getattr(Dispatch, name)).parameters) - 1
    answer = getattr(WrappedDispatch(inner), name)(*range(count))
    if is_async:
        answer = await answer
    assert calls == [tuple(range(count))]
    assert answer in ("answer", None)


class Rows(StreamDouble):
    """A stream of two batches."""

    schema = pa.schema({"n": pa.int64()})
    reads_only_catalog = True
    written = None

    def __init__(self) -> None:
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        for n in range(2):
            yield pa.RecordBatch.from_pydict({"n": [n]}, schema=self.schema)

    async def aclose(self) -> None:
        self.is_closed = True


async def test_streams_are_passed_on() -> None:
    rows = Rows()
    stream = WrappedStream(cast(BatchStream, rows))
    assert (stream.schema, stream.reads_only_catalog, stream.written) == (rows.schema, True, None)
    assert not stream.is_at_end and stream.traits is rows.traits
    assert [batch.to_pydict() async for batch in stream] == [{"n": [0]}, {"n": [1]}]
    await stream.aclose()
    assert rows.is_closed


def test_a_stream_that_is_known_to_end_says_so() -> None:
    rows: Any = Rows()
    rows.is_at_end = True
    assert WrappedStream(rows).is_at_end
