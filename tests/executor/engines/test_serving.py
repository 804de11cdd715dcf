"""Both ends of a channel in one process: how the rows of a stream cross."""

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.channels.channel import Channel
from caraway_core.errors import ExecutionError
from caraway_core.protocols.dispatch import StreamTraits
from caraway_core.protocols.wrapped_streams import WrappedStream
from caraway_executor.engines import shared_memory, watching
from caraway_executor.engines.causes import NotBegunError
from caraway_executor.engines.messages import BatchesSent, Stopped
from caraway_executor.engines.process import EngineProcess
from caraway_executor.engines.serving import Serving
from caraway_executor.engines.shared_memory import ReadableMemory, WritableMemory
from caraway_executor.engines.threads import CallThreads
from caraway_executor.statements.looking_up import RowsStream
from tests.kit.deadlines import eventually
from tests.kit.panics import Panic

FEW = pa.record_batch({"n": [1, 2, 3]})
MANY = pa.record_batch({"n": range(100_000)})
LARGE = pa.record_batch({"text": ["x" * 100] * 8_000})
NONE = FEW.slice(0, 0)


class Answers:
    """Serves rows that are at hand."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.is_free, self.is_ended = asyncio.Event(), asyncio.Event()
        self.executor: Any = SimpleNamespace(close=lambda: None, probe=self.is_free.wait)
        self.calls: dict[str, Any] = {"fails": _fails, "nothing": _nothing}
        self.streams: dict[str, Any] = {
            "rows": self._open,
            "slow": self._open_slow,
            "fails": _fails,
        }
        self._rows = rows

    async def _open(self) -> RowsStream:
        return RowsStream(self._rows, reads_only_catalog=True)

    async def _open_slow(self) -> "SlowEnd":
        return SlowEnd(RowsStream(self._rows, reads_only_catalog=True), self.is_ended)


class SlowEnd(WrappedStream):
    """Has its rows at once, and its end after an event."""

    def __init__(self, stream: RowsStream, end: asyncio.Event) -> None:
        super().__init__(stream)
        self._end = end
        self._traits = StreamTraits()

    @property
    def traits(self) -> StreamTraits:
        """Those of a stream whose rows are not at hand."""
        return self._traits

    async def __anext__(self) -> pa.RecordBatch:
        try:
            return await anext(self._batches)
        except StopAsyncIteration:
            await self._end.wait()
            raise


RAISED = {
    "panic": Panic("index out of bounds"),
    "cancelled": asyncio.CancelledError(),
    "group": BaseExceptionGroup("", [Panic()]),
    "defect": TypeError("no"),
}


async def _fails(which: str) -> Any:
    raise RAISED[which]


async def _nothing() -> None:
    pass


@asynccontextmanager
async def served(
    rows: pa.RecordBatch,
    memory: int | None = None,
    answers: Answers | None = None,
    threads: CallThreads | None = None,
) -> AsyncIterator[tuple[EngineProcess, list[Any]]]:
    """Serve rows; yield the other end, and the messages that arrive there.

    `memory` is the descriptor of the shared memory.
    """
    ours, theirs = socket.socketpair()
    shared = None if memory is None else WritableMemory(memory)
    serving = Serving(answers or Answers(rows), threads or CallThreads(1, "test"), shared)
    serving.channel = await Channel.open(theirs, serving.receive, lambda: None)
    readable = None if memory is None else ReadableMemory(memory)
    process, arrived = EngineProcess(0, lambda _process: None, readable), list[Any]()
    receive = process._receive

    def note(message: object, body: pa.Buffer | None) -> None:
        arrived.append(message)
        receive(message, body)

    process._receive = note  # type: ignore[method-assign]
    await process.connect(ours)
    try:
        yield process, arrived
    finally:
        serving.close()
        serving.channel.close()
        process.close()


@pytest.mark.parametrize(
    ("rows", "messages"),
    [
        (FEW, ["Begun", "Answered"]),
        (MANY, ["Begun", "Opened", "BatchesSent", "BatchesSent", "StreamEnded"]),
        (NONE, ["Begun", "Opened", "StreamEnded"]),
    ],
    ids=["few", "many", "none"],
)
async def test_rows_at_hand_come_in_one_message_unless_they_are_many(
    rows: pa.RecordBatch, messages: list[str]
) -> None:
    async with served(rows) as (process, arrived):
        stream = await process.open("rows")
        assert stream.schema == rows.schema and stream.reads_only_catalog
        batches = [batch async for batch in stream]
        assert pa.Table.from_batches(batches, rows.schema).equals(pa.Table.from_batches([rows]))
        assert stream.is_at_end and not process.works
        assert [type(each).__name__ for each in arrived] == messages


async def test_rows_whose_end_waits_are_kept_until_threads_are_free() -> None:
    answers = Answers(FEW)
    async with served(FEW, answers=answers) as (process, arrived):
        opening = asyncio.ensure_future(process.open("slow"))
        await process.call("nothing")
        assert "Opened" not in [type(each).__name__ for each in arrived]
        answers.is_free.set()
        stream = await opening
        assert await anext(stream) == FEW
        answers.is_ended.set()
        assert [batch async for batch in stream] == []


async def test_rows_whose_end_waits_come_whole_with_it() -> None:
    answers = Answers(FEW)
    async with served(FEW, answers=answers) as (process, arrived):
        opening = asyncio.ensure_future(process.open("slow"))
        await process.call("nothing")
        answers.is_ended.set()
        assert [batch async for batch in await opening] == [FEW]
        assert "Answered" in [type(each).__name__ for each in arrived]


async def test_rows_whose_end_waits_are_withdrawn_while_threads_are_not_free() -> None:
    answers = Answers(FEW)
    async with served(FEW, answers=answers) as (process, _):
        opening = asyncio.ensure_future(process.open("slow"))
        await process.call("nothing")
        watching.withdraw_from_starved(process, 0.0, 0.0)
        with pytest.raises(NotBegunError):
            await opening


async def test_a_probe_that_waits_for_a_thread_outlives_its_statement(
    caplog: pytest.LogCaptureFixture,
) -> None:
    threads, is_free = CallThreads(1, "test"), threading.Event()
    answers, is_waiting, is_probed = Answers(FEW), asyncio.Event(), asyncio.Event()

    async def probe() -> None:
        waiting = asyncio.get_running_loop().run_in_executor(threads, lambda: None)
        is_waiting.set()
        await waiting
        is_probed.set()

    answers.executor.probe = probe
    threads.submit(is_free.wait)
    try:
        async with asyncio.timeout(60), served(FEW, None, answers, threads) as (process, arrived):
            opening = asyncio.ensure_future(process.open("slow"))
            await is_waiting.wait()
            opening.cancel()

            async def is_stopped() -> bool:
                return any(isinstance(each, Stopped) for each in arrived)

            await eventually(is_stopped, "the statement has ended")
            is_free.set()
            await is_probed.wait()
    finally:
        is_free.set()
        threads.shutdown()
    assert not caplog.records


async def test_rows_that_are_kept_do_not_hold_up_others() -> None:
    size = LARGE.nbytes * 9
    memory = shared_memory.create(size - size % 4096)
    kept: list[pa.RecordBatch] = []
    async with served(LARGE, memory) as (process, arrived):

        def in_memory() -> list[bool]:
            return [each.place is not None for each in arrived if isinstance(each, BatchesSent)]

        for _ in range(12):
            kept += [batch async for batch in await process.open("rows")]
        assert kept == [LARGE] * 12
        # When the memory was used up, rows came over the socket.
        assert in_memory() == [True] * 8 + [False] * 4
        kept.clear()

        async def is_free() -> bool:
            await process.call("nothing")
            arrived.clear()
            assert [batch async for batch in await process.open("rows")] == [LARGE]
            return in_memory() == [True]

        await eventually(is_free, "the memory is used again")
    os.close(memory)


@pytest.mark.parametrize("which", RAISED)
async def test_whatever_a_call_raises_is_answered(which: str) -> None:
    """An exception that is not an `Exception` was not answered: the caller waited forever."""
    async with asyncio.timeout(60), served(FEW) as (process, _):
        for ask in (process.call, process.open):
            with pytest.raises(ExecutionError, match="the log has the cause"):
                await ask("fails", which)
        assert not process.works
