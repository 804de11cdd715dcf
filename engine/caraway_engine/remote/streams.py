"""Streams of statements that read answers of databases, without a wait in the engine's threads."""

import asyncio
from collections.abc import Callable, Sequence
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
pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="remote")


@dataclass(frozen=True, slots=True)
class OwnBatch:
    """A batch as those of the engine are asked for it."""

    rows: pa.RecordBatch

    def to_pyarrow(self) -> pa.RecordBatch:
        return self.rows


def answered(answer: SourceQuery, schema: pa.Schema) -> "AnswerStream":
    """Return the rows of one answer, with the names and types of a statement."""
    return AnswerStream(AnswerReading(answer), schema)


class AnswerStream(OwnStream):
    """The rows of one answer, which are those of the whole statement."""

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
    """The rows of a plan over answers, each of which has its first rows before the plan runs."""

    def __init__(
        self, readings: Sequence[AnswerReading], start: Callable[[], Any], schema: pa.Schema
    ) -> None:
        self._readings = readings
        self._schema = schema
        self._start = start
        self._stream: Any = None
        closer.start()

    async def __anext__(self) -> OwnBatch:
        if self._stream is None:
            loop = asyncio.get_running_loop()
            begun = [loop.run_in_executor(pool, each.begin) for each in self._readings]
            await asyncio.gather(*begun)
            self._stream = self._start()
        batch = await self._stream.__anext__()
        return OwnBatch(plain.restored(batch.to_pyarrow(), self._schema))

    def close(self) -> None:
        self._stream = None
        for each in self._readings:
            closer.give(each)


class LateStream(OwnStream):
    """The rows of a plan that does not begin before the first of them is asked for."""

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self._stream: Any = None
        self._opened = OpenedReads()
        closer.start()

    async def __anext__(self) -> Any:
        if self._stream is None:
            self._stream = await asyncio.get_running_loop().run_in_executor(pool, self._begun)
        return await self._stream.__anext__()

    def close(self) -> None:
        self._stream = None
        closer.give(self._opened)

    def _begun(self) -> Any:
        with noted(self._opened):
            return self._start()


class Closable(Protocol):
    """Something under way that can be stopped. Stopping it may block."""

    def close(self) -> None: ...


class _Closer:
    """Closes readings in other threads, since that may wait for the database."""

    def __init__(self) -> None:
        self._given: SimpleQueue[Closable] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start its thread, unless it runs."""
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._close_all, name="remote-closing", daemon=True)
                self._thread.start()

    def give(self, reading: Closable) -> None:
        """Have a reading closed soon.

        The garbage collector may call this at any place, also where a lock is held that submitting
        work needs. Putting something in this queue needs none.
        """
        self._given.put(reading)

    def _close_all(self) -> None:
        while True:
            reading = self._given.get()
            pool.submit(reading.close)
            # Or the last one would be kept until the next one comes.
            del reading


closer = _Closer()
