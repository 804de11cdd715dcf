"""Both ends of a channel in one process: how the rows of a stream cross."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError
from caraway_executor.engines.channel import Channel
from caraway_executor.engines.process import EngineProcess
from caraway_executor.engines.serving import Serving
from caraway_executor.engines.threads import CallThreads
from caraway_executor.looking_up import RowsStream
from tests.kit.panics import Panic

FEW = pa.record_batch({"n": [1, 2, 3]})
MANY = pa.record_batch({"n": range(100_000)})
NONE = FEW.slice(0, 0)


class Answers:
    """Serves rows that are at hand."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.executor: Any = SimpleNamespace(close=lambda: None)
        self.calls: dict[str, Any] = {"fails": _fails}
        self.streams: dict[str, Any] = {"rows": self._open, "fails": _fails}
        self._rows = rows

    async def _open(self) -> RowsStream:
        return RowsStream(self._rows, reads_only_catalog=True)


RAISED = {
    "panic": Panic("index out of bounds"),
    "cancelled": asyncio.CancelledError(),
    "group": BaseExceptionGroup("", [Panic()]),
    "defect": TypeError("no"),
}


async def _fails(which: str) -> Any:
    raise RAISED[which]


@asynccontextmanager
async def served(rows: pa.RecordBatch) -> AsyncIterator[tuple[EngineProcess, list[str]]]:
    """Serve rows; gives the other end, and the kinds of the messages that arrive there."""
    ours, theirs = socket.socketpair()
    serving = Serving(Answers(rows), CallThreads(1, "test"))
    serving.channel = await Channel.open(theirs, serving.receive, lambda: None)
    process, arrived = EngineProcess(0, lambda _process: None), list[str]()
    receive = process._receive

    def note(message: object, body: pa.Buffer | None) -> None:
        arrived.append(type(message).__name__)
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
        (MANY, ["Begun", "Opened", "BatchSent", "StreamEnded"]),
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
        assert [batch async for batch in stream] == ([rows] if rows.num_rows else [])
        assert stream.is_at_end and not process.works
        assert arrived == messages


@pytest.mark.parametrize("which", RAISED)
async def test_whatever_a_call_raises_is_answered(which: str) -> None:
    """An exception that is no `Exception` was not answered: the caller waited forever."""
    async with asyncio.timeout(60), served(FEW) as (process, _):
        for ask in (process.call, process.open):
            with pytest.raises(ExecutionError, match="the log has the cause"):
                await ask("fails", which)
        assert not process.works
