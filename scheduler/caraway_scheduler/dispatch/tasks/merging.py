"""Merges the row streams of several tasks into one, in the schema of the statement."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pyarrow as pa

from caraway_core.concurrency import tasks
from caraway_core.errors import (
    AnswerCutError,
    CarawayError,
    ExecutionError,
    ExecutorLostError,
    QueryError,
)
from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import BatchStream, StreamTraits
from caraway_engine.rows import plain
from caraway_scheduler.dispatch.tasks.reports import OnRead, WorkReports
from caraway_scheduler.dispatch.tasks.storing import CUT

Opener = Callable[[], Awaitable[BatchStream]]
_AHEAD = 2
"""The number of batches of each task that are buffered for the reader."""


class MergedStream:
    """Reads task streams concurrently, at most `_AHEAD` batches of each ahead of the reader.

    The streams in `streams` are read at once; when one ends, the next of `openers` is opened.
    Batches have positional column names and plain types, and are restored to `schema`. `on_close`
    is called once with the rows and bytes read, at the end or when the reader closes the stream.
    `measure` returns the rows and bytes that a batch counts for.
    """

    def __init__(
        self,
        streams: Sequence[BatchStream],
        schema: pa.Schema,
        reads_only_catalog: bool,
        on_close: OnRead,
        openers: Sequence[Opener] = (),
        reports: WorkReports | None = None,
    ) -> None:
        self._reports = reports
        self.schema = schema
        self.reads_only_catalog = reads_only_catalog
        self.written: TableName | None = None
        self.measure: Callable[[pa.RecordBatch], tuple[int, int]] = _measure
        self.traits = StreamTraits()
        self.ended = 0
        """How many tasks were read to their end."""
        self._streams = list(streams)
        self._openers = deque(openers)
        self._on_close: OnRead | None = on_close
        self._rows = self._size_bytes = 0
        self._queue: asyncio.Queue[pa.RecordBatch | BaseException | None] = asyncio.Queue(
            _AHEAD * len(self._streams)
        )
        self._readers: list[asyncio.Task[None]] = []
        self._left = len(self._streams)

    @property
    def is_at_end(self) -> bool:
        """True if the end was reached or the stream closed."""
        return self._on_close is None

    @property
    def passed(self) -> tuple[int, int]:
        """The rows and bytes that were read so far."""
        return self._rows, self._size_bytes

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if self._on_close is None:
            raise StopAsyncIteration
        if len(self._streams) == 1 and not self._openers:
            return await self._from_one()
        if not self._readers:
            self._readers = [tasks.begin(self._read(each)) for each in self._streams]
        while self._left:
            item = await self._queue.get()
            if isinstance(item, BaseException):
                await self.aclose()
                raise item
            if item is not None:
                return item
            self._left -= 1
        await self.aclose()
        raise StopAsyncIteration

    async def _from_one(self) -> pa.RecordBatch:
        try:
            return self._restored(await anext(aiter(self._streams[0])))
        except BaseException as exc:
            self.ended += isinstance(exc, StopAsyncIteration)
            await self.aclose()
            if isinstance(exc, CUT):
                raise self._cut_short(exc) from exc
            raise

    async def _read(self, stream: BatchStream) -> None:
        try:
            while True:
                async for batch in stream:
                    await self._queue.put(self._restored(batch))
                self.ended += 1
                if not self._openers:
                    break
                stream = await self._openers.popleft()()
                self._streams.append(stream)
        except CUT as exc:
            await self._queue.put(self._cut_short(exc))
        except asyncio.CancelledError:
            if tasks.is_cancelled():
                raise
            # Something that it awaited was cancelled, so report it: the reader must not wait
            # forever.
            await self._queue.put(_stopped())
        except BaseException as exc:
            if tasks.ends(exc):
                raise
            await self._queue.put(exc)
        else:
            await self._queue.put(None)

    def _restored(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows, size_bytes = self.measure(batch)
        self._rows += rows
        self._size_bytes += size_bytes
        schema = plain.plain_schema(self.schema) if self.traits.takes_plain else self.schema
        return plain.restored(batch, schema)

    def _cut_short(self, exc: CarawayError) -> QueryError:
        if isinstance(exc, ExecutorLostError) and self._reports is not None:
            self._reports.on_lost(exc.executor_id, exc.cause)
        if self.written is not None:
            return ExecutionError(
                f"{exc.message}; dataset '{self.written}' may or may not have been "
                "written to; check it before you run the statement again"
            )
        return AnswerCutError(
            f"the answer was cut short because {exc.message}; run the statement again"
        )

    async def aclose(self) -> None:
        """Close all streams, and report the rows and bytes read."""
        on_close, self._on_close = self._on_close, None
        if on_close is None:
            return
        for reader in self._readers:
            reader.cancel()
        try:
            # A generator cannot be closed while it is being read.
            if self._readers:
                await asyncio.wait(self._readers)
        finally:
            # Also if this is cancelled meanwhile, or the executors would go on.
            try:
                await asyncio.gather(
                    *(stream.aclose() for stream in self._streams), return_exceptions=True
                )
            finally:
                on_close(self._rows, self._size_bytes)


class FoundStream:
    """Rows that were all found: those of a search, or the count of a write."""

    def __init__(
        self, rows: pa.Table, *, reads_only_catalog: bool, written: TableName | None = None
    ) -> None:
        self.schema = rows.schema
        self.written = written
        self.reads_only_catalog = reads_only_catalog
        self._batches = rows.to_batches()
        self.traits = StreamTraits()

    @property
    def is_at_end(self) -> bool:
        """True if all rows were read."""
        return not self._batches

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if not self._batches:
            raise StopAsyncIteration
        return self._batches.pop(0)

    async def aclose(self) -> None:
        """Drop the rows."""
        self._batches = []


def _stopped() -> QueryError:
    return AnswerCutError(
        "the answer was cut short because a task of the statement was cancelled by the runtime; "
        "run the statement again"
    )


def _measure(batch: pa.RecordBatch) -> tuple[int, int]:
    return batch.num_rows, batch.nbytes
