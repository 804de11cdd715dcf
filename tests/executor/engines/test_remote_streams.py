"""Rows that a process sends: all of them in order, no more than requested, and their end."""

import asyncio
import gc

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_executor.engines.crossing import RowsIn, RowsOut
from caraway_executor.engines.remote_streams import RemoteStream

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string_view())])


class _Process:
    """Records the requests to the process."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.stopped: list[int] = []

    def more(self, number: int, batches: int) -> None:
        self.asked.append(batches)

    def stop(self, number: int) -> None:
        self.stopped.append(number)


def _batch(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int64()),
                            pa.array([f"text of {n}" for n in numbers], pa.string_view())],
                           schema=SCHEMA)  # fmt: skip


def _stream(process: _Process, written: TableName | None = None) -> RemoteStream:
    return RemoteStream(process, 7, RowsIn(SCHEMA), True, written)


def _send(stream: RemoteStream, *batches: pa.RecordBatch) -> None:
    message, body, _ = RowsOut(SCHEMA).sent(7, batches, None)
    stream.add(body, message.is_whole)


async def _read(stream: RemoteStream) -> list[int]:
    return [n async for batch in stream for n in batch.column("n").to_pylist()]


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=1, max_size=3)),
    st.booleans(),
)
def test_rows_arrive_in_order_however_they_are_sent(
    messages: list[list[list[int]]], is_plain: bool
) -> None:
    async def read() -> tuple[list[int], set[pa.Schema]]:
        process = _Process()
        stream = _stream(process)
        stream.traits.takes_plain = is_plain
        reader = asyncio.create_task(_collected(stream))
        for batches in messages:
            _send(stream, *(_batch(*numbers) for numbers in batches))
            await asyncio.sleep(0)
        stream.end(None)
        found = await reader
        assert sum(process.asked) <= len(messages) and process.stopped == []
        assert stream.is_at_end and not stream.traits.is_at_hand
        return found

    found, schemas = asyncio.run(read())
    assert found == [n for batches in messages for numbers in batches for n in numbers]
    assert all((schema == SCHEMA) is not is_plain for schema in schemas)


async def _collected(stream: RemoteStream) -> tuple[list[int], set[pa.Schema]]:
    found: list[int] = []
    schemas = set()
    async for batch in stream:
        found += batch.column("n").to_pylist()
        assert batch.column("s").to_pylist() == [f"text of {n}" for n in batch["n"].to_pylist()]
        schemas.add(batch.schema)
    return found, schemas


async def test_an_error_comes_after_the_rows_before_it_and_once() -> None:
    process = _Process()
    stream = _stream(process)
    _send(stream, _batch(1))
    stream.end(ExecutionError("broken"))
    assert not stream.is_at_end
    assert (await anext(stream)).num_rows == 1
    with pytest.raises(ExecutionError, match="broken"):
        await anext(stream)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    await stream.aclose()
    assert process.stopped == []


async def test_as_many_messages_are_asked_for_as_were_taken() -> None:
    process = _Process()
    stream = _stream(process)
    for n in range(6):
        _send(stream, _batch(n))
    assert process.asked == []
    for taken in range(1, 6):
        await anext(stream)
        assert sum(process.asked) == taken // 2 * 2
    stream.end(None)
    await anext(stream)
    assert sum(process.asked) == 4  # Nobody is asked for more after the end.


async def test_a_write_begins_with_its_reader() -> None:
    process = _Process()
    stream = _stream(process, TableName("t"))
    assert process.asked == []
    _send(stream, _batch(1))
    await anext(stream)
    assert process.asked == [0]
    stream.end(None)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert process.asked == [0]


@pytest.mark.parametrize("how", ["close", "cancel", "drop"])
async def test_a_stream_that_nobody_reads_stops_its_statement_once(how: str) -> None:
    process = _Process()
    stream = _stream(process)
    if how == "cancel":
        reader = asyncio.create_task(_read(stream))
        await asyncio.sleep(0)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
    elif how == "close":
        _send(stream, _batch(1))
        await stream.aclose()
        await stream.aclose()
        assert not stream.traits.is_at_hand
    del stream
    gc.collect()
    assert process.stopped == [7]


async def test_a_body_that_is_no_rows_is_an_error_and_stops_the_statement() -> None:
    process = _Process()
    stream = _stream(process)
    stream.add(pa.py_buffer(b"nonsense"), True)
    with pytest.raises(pa.ArrowInvalid):
        await anext(stream)
    await stream.aclose()
    assert process.stopped == [7]
