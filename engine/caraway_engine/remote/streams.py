"""Streams of statements that read answers of databases without blocking engine threads."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Protocol

import pyarrow as pa

from caraway_core.work import SourceQuery
from caraway_engine.execution.streams import OwnStream
from caraway_engine.remote.answers import AnswerReading
from caraway_engine.remote.opened import OpenedReads, noted
from caraway_engine.rows import plain

_THREADS = 32
_CLOSING_THREADS = 32
pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="remote")
_closing = ThreadPoolExecutor(_CLOSING_THREADS, thread_name_prefix="remote-closing")
"""Apart from `pool`, whose threads may all wait for what only closing ends."""


class StartPlan(Protocol):
    """Starts a plan in the engine, and returns its stream. Blocks."""

    def __call__(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class OwnBatch:
    """A batch with the interface of the engine's batches."""

    rows: pa.RecordBatch

    def to_pyarrow(self) -> pa.RecordBatch:
        """Return the rows."""
        return self.rows


def answered(answer: SourceQuery, schema: pa.Schema) -> "AnswerStream":
    """Return the rows of one answer, with the names and types of a statement."""
    return AnswerStream(AnswerReading(answer), schema)


class AnswerStream(OwnStream):
    """The rows of one answer that is the result of the whole statement."""

    def __init__(self, reading: AnswerReading, schema: pa.Schema) -> None:
        self._reading = reading
        self._schema = schema
        closer.start()

    async def __anext__(self) -> OwnBatch:
        loop = asyncio.get_running_loop()
        batch = await loop.run_in_executor(pool, self._reading.next)
        if batch is None:
            raise StopAsyncIteration
        return OwnBatch(plain.restored(batch, self._schema))

    def close(self) -> None:
        closer.give(self._reading)


class PreparedStream(OwnStream):
    """The rows of a plan over answers. It starts when each answer has its first rows."""

    def __init__(
        self, readings: Sequence[AnswerReading], start: StartPlan, schema: pa.Schema
    ) -> None:
        self._readings = readings
        self._schema = schema
        self._start = start
        self._stream: Any = None
        closer.start()

    async def __anext__(self) -> OwnBatch:
        if self._stream is None:
            loop = asyncio.get_running_loop()
            begun = [loop.run_in_executor(pool, each.send_statement) for each in self._readings]
            await asyncio.gather(*begun)
            # Starting waits for a thread of the engine, which may wait for the event loop.
            self._stream = await loop.run_in_executor(pool, self._start)
        batch = await self._stream.__anext__()
        return OwnBatch(plain.restored(batch.to_pyarrow(), self._schema))

    def close(self) -> None:
        """See `OwnStream.close`."""
        self._stream = None
        for each in self._readings:
            closer.give(each)


class LateStream(OwnStream):
    """The rows of a plan that starts when the first row is requested."""

    def __init__(self, start: StartPlan) -> None:
        self._start = start
        self._stream: Any = None
        self._opened = OpenedReads()
        closer.start()

    async def __anext__(self) -> object:
        if self._stream is None:
            self._stream = await asyncio.get_running_loop().run_in_executor(pool, self._begun)
        return await self._stream.__anext__()

    @property
    def planned(self) -> Sequence[SourceQuery]:
        """The statements that scans of the plan send to databases; none before it starts."""
        return self._opened.planned

    def close(self) -> None:
        """See `OwnStream.close`."""
        self._stream = None
        closer.give(self._opened)

    def _begun(self) -> Any:
        with noted(self._opened):
            return self._start()


class Closable(Protocol):
    """Something under way that can be stopped. Stopping it may block."""

    def close(self) -> None: ...


class _Closer:
    """Closes reads in other threads, because closing may wait for the database."""

    def __init__(self) -> None:
        self._given: SimpleQueue[Closable] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start the thread, unless it is running."""
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._close_all, name="remote-closing", daemon=True)
                self._thread.start()

    def give(self, reading: Closable) -> None:
        """Close a read soon, in another thread.

        The garbage collector may call this anywhere, even while a lock is held that submitting work
        would need. Putting an item in this queue needs no lock.
        """
        self._given.put(reading)

    def _close_all(self) -> None:
        while True:
            reading = self._given.get()
            _closing.submit(reading.close)
            # Otherwise the variable would keep this read alive until the next one arrives.
            del reading


closer = _Closer()
