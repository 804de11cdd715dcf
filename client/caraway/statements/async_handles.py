"""Asynchronous readers and query handles, whose blocking calls run in threads."""

import asyncio
import contextlib
import functools
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from caraway.requests.closing import AsyncClosing
from caraway.rows.readers import RecordReader
from caraway.statements.queries import QueryHandle, QueryState
from caraway_core.errors import CarawayError

if TYPE_CHECKING:
    import pyarrow as pa

    from caraway.rows.results import SqlResult

T = TypeVar("T")
THREADS = 16


class AsyncReader(AsyncClosing):
    """The rows of a statement, read batch by batch in constant memory."""

    def __init__(self, reader: RecordReader, calls: "ThreadedCalls") -> None:
        self._reader = reader
        self._calls = calls
        self.schema = reader.schema

    async def __aiter__(self) -> AsyncIterator["pa.RecordBatch"]:
        while (batch := await self.read_next_batch()) is not None:
            yield batch

    async def read_next_batch(self) -> "pa.RecordBatch | None":
        """Return the next batch, or None after the last one."""
        return await self._calls.run_call(
            self._reader.read_next_batch, abandoned=self._reader.close
        )

    async def read_all(
        self, on_data: "Callable[[pa.RecordBatch], object] | None" = None
    ) -> "SqlResult":
        """Read the remaining rows. `on_data` gets each batch as it arrives, on the event loop."""
        import pyarrow as pa

        from caraway.rows.results import SqlResult

        batches = []
        async with self:
            async for batch in self:
                if on_data is not None:
                    on_data(batch)
                batches.append(batch)
        return SqlResult(pa.Table.from_batches(batches, self.schema))

    async def close(self) -> None:
        """Cancel the statement unless all rows were read."""
        await self._calls.run_call(self._reader.close)


class AsyncQueryHandle:
    """A handle for one asynchronous query."""

    def __init__(self, handle: QueryHandle, calls: "ThreadedCalls") -> None:
        self._handle = handle
        self._calls = calls
        self.id = handle.id

    def __repr__(self) -> str:
        return f"AsyncQueryHandle({self.id!r})"

    async def status(self, wait: float = 0.0) -> QueryState:
        """Return the state of the query, waiting up to `wait` seconds for it to finish."""
        return await self._calls.run_call(lambda: self._handle.status(wait))

    async def wait(
        self,
        timeout_s: float | None = None,
        on_progress: Callable[[QueryState], object] | None = None,
    ) -> QueryState:
        """Wait for the query to finish, at most `timeout_s` seconds, and return its state.

        `on_progress` runs on the event loop.
        """
        loop = asyncio.get_running_loop()
        deadline = None if timeout_s is None else loop.time() + timeout_s
        # Short waits: a task that is cancelled must not hold a thread for long.
        while True:
            left_s = 1.0 if deadline is None else min(1.0, max(0.0, deadline - loop.time()))
            state = await self._calls.run_call(functools.partial(self._handle.wait, left_s))
            if on_progress is not None:
                on_progress(state)
            if state.is_over or (deadline is not None and loop.time() >= deadline):
                return state

    async def results(
        self, on_data: "Callable[[pa.RecordBatch], object] | None" = None
    ) -> "SqlResult":
        """Wait for the query to finish and return its rows."""
        return await (await self.reader()).read_all(on_data)

    async def reader(self) -> AsyncReader:
        """Wait for the query to finish and read its rows batch by batch."""
        await self.wait()
        reader = await self._calls.run_call(self._handle.reader, unwanted=RecordReader.close)
        return AsyncReader(reader, self._calls)

    async def cancel(self) -> QueryState:
        """Cancel the query unless it has finished. Requires a key with write access."""
        return await self._calls.run_call(self._handle.cancel)


class ThreadedCalls:
    """Runs calls that block in a few threads."""

    def __init__(self, threads: int = THREADS) -> None:
        self._threads = ThreadPoolExecutor(threads, "caraway-client")
        self._is_closed = False

    async def run_call(
        self,
        call: Callable[[], T],
        *,
        unwanted: Callable[[T], object] | None = None,
        abandoned: Callable[[], object] | None = None,
    ) -> T:
        """Run a call and wait for it.

        If the task is cancelled meanwhile, `abandoned` is called at once, and `unwanted` with the
        result once there is one.

        Raises:
            CarawayError: the client is closed.
        """
        if self._is_closed:
            raise CarawayError("the client is closed")
        future = self._threads.submit(call)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if unwanted is not None:
                future.add_done_callback(lambda done: _discard(done.result, unwanted))
            if abandoned is not None:
                # It may wait for a moment; the loop must not. Not one of the threads of calls:
                # all of them may wait for what this ends.
                threading.Thread(target=abandoned, name="caraway-close", daemon=True).start()
            raise

    def close(self) -> None:
        """Take no more calls; those under way end by themselves."""
        self._is_closed = True
        self._threads.shutdown(wait=False)


def _discard(result: Callable[[], T], unwanted: Callable[[T], object]) -> None:
    with contextlib.suppress(Exception):
        unwanted(result())
