"""Streams of batch calls, which run in threads that may wait."""

import asyncio
from collections.abc import Callable, Iterator
from threading import Lock

import pyarrow as pa

from caraway_core.errors import ExecutionError, QueryError
from caraway_engine.execution.streams import OwnStream
from caraway_engine.remote.streams import OwnBatch, closer, pool


class CallStream(OwnStream):
    """The batches that a call yields; it begins when the first of them is asked for."""

    def __init__(self, begin: Callable[[], Iterator[pa.RecordBatch]]) -> None:
        self._reading = _CallReading(begin)
        closer.start()

    async def __anext__(self) -> OwnBatch:
        batch = await asyncio.get_running_loop().run_in_executor(pool, self._reading.next)
        if batch is None:
            raise StopAsyncIteration
        return OwnBatch(batch)

    def close(self) -> None:
        closer.give(self._reading)


class _CallReading:
    """One run of a call. Any thread may call `close`, which waits for the batch under way."""

    def __init__(self, begin: Callable[[], Iterator[pa.RecordBatch]]) -> None:
        self._begin: Callable[[], Iterator[pa.RecordBatch]] | None = begin
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._lock = Lock()

    def next(self) -> pa.RecordBatch | None:
        """Return the next batch; None: there are no more.

        Raises:
            QueryError: the call failed.
        """
        with self._lock:
            try:
                if self._batches is None:
                    if self._begin is None:
                        return None
                    self._batches = self._begin()
                return next(self._batches, None)
            except QueryError:
                raise
            except Exception as exc:
                # The function is not the engine's, so no word of it is one of the engine's.
                text = f"{type(exc).__name__}: {exc}"
                raise ExecutionError(f"a batch call failed with {text}") from exc

    def close(self) -> None:
        """Let go of the call and its rows."""
        with self._lock:
            self._begin, self._batches = None, iter(())
