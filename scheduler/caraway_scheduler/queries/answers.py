"""Streams the rows of a statement to a client, from the engine or from the cache."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from caraway_core.concurrency import tasks
from caraway_core.ids import QueryId
from caraway_core.protocols.dispatch import BatchStream
from caraway_engine.rows import plain
from caraway_scheduler.queries.active import ActiveQuery
from caraway_scheduler.queries.cache import CachedAnswer

CacheStatus = Literal["HIT", "MISS", "BYPASS"]
_END_WAIT_S = 0.025
_SAMPLE_ROWS = 3
_SMALL_BYTES = 64 * 1024
"""Engine processes share no memory for batches smaller than this."""
Finish = Callable[[BaseException | None, int, pa.RecordBatch | None], None]


@dataclass(frozen=True, slots=True)
class StatementAnswer:
    """The answer to a statement.

    `cache_status` is None if the statement does not use the results cache.
    """

    query_id: QueryId
    rows: "LiveRows | CachedRows"
    cache_status: CacheStatus | None


class CachedRows:
    """The rows of an answer from the results cache."""

    def __init__(self, answer: CachedAnswer, *, takes_plain: bool = False) -> None:
        self._answer = answer
        self._takes_plain = takes_plain
        self.schema = answer.schema

    @property
    def row_count(self) -> int:
        """The number of rows in the answer."""
        return sum(batch.num_rows for batch in self._answer.batches)

    @property
    def batches(self) -> tuple[pa.RecordBatch, ...]:
        """All batches of the answer; they may have plain types if the reader takes these."""
        if self._takes_plain:
            return self._answer.batches
        return tuple(plain.restored(each, self.schema) for each in self._answer.batches)

    def encoded(self, form: str) -> bytes | None:
        """Return the body of the answer in an output format, if it is cached."""
        return self._answer.encoded.get(form)

    def remember(self, form: str, body: bytes) -> None:
        """Cache the body of the answer in an output format."""
        self._answer.remember_encoded(form, body)

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        for batch in self.batches:
            yield batch

    def close(self, error: BaseException | None = None) -> None:
        """Do nothing: cached rows hold no resources."""
        pass


class LiveRows:
    """The rows of a running statement.

    One batch is fetched ahead, so that early failures are known before the first byte is sent.
    """

    def __init__(self, stream: BatchStream, query: ActiveQuery, finish: Finish) -> None:
        self._stream: BatchStream | None = stream
        self._batches = aiter(stream)
        self._query = query
        self._finish = finish
        self._ahead: list[pa.RecordBatch] = []
        self._next: asyncio.Future[pa.RecordBatch | None] | None = None
        self._is_exhausted = False
        self._kept: list[pa.RecordBatch] | None = None
        self._kept_bytes = 0
        self._sample: pa.RecordBatch | None = None
        self._keep_at_most = 0
        self.on_complete: Callable[[list[pa.RecordBatch]], None] | None = None
        self.on_end: Callable[[], None] = lambda: None
        self.schema = stream.schema
        self.offered = stream.traits.answer
        self.row_count = 0

    def keep(self, at_most_bytes: int, store: Callable[[list[pa.RecordBatch]], None]) -> None:
        """Collect the batches for the cache and pass them to `store` at the end.

        Collection stops if they exceed `at_most_bytes`.
        """
        self._kept = []
        self._keep_at_most = at_most_bytes
        self.on_complete = store

    async def prefetch(self) -> None:
        """Fetch the first batch; call this inside a step of the query.

        Most answers consist of one batch. If the end follows at once, the answer is complete and
        needs no streaming. The wait for the end is short, so that the first batch is not delayed.
        """
        try:
            self._ahead.append(await anext(self._batches))
            if self._stream is not None and self._stream.is_at_end:
                # The stream is at its end, so this needs no task.
                self._ahead.append(await anext(self._batches))
            self._next = tasks.begin(_fetch(self._batches))
            await asyncio.wait((self._next,), timeout=_END_WAIT_S)
            if self._next.done():
                self._ahead.append(await self._take_next())
        except StopAsyncIteration:
            self._is_exhausted = True
        except BaseException:
            # An abandoned fetch would keep the engine busy for no reader.
            self._let_go()
            raise

    @property
    def whole(self) -> list[pa.RecordBatch] | None:
        """All batches if the answer was fetched completely, otherwise None."""
        return self._ahead if self._is_exhausted else None

    @property
    def is_at_hand(self) -> bool:
        """True if the next batch has arrived."""
        if self._ahead:
            return True
        if self._stream is None or self._next is not None:
            return False
        return self._stream.traits.is_at_hand

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if self._query.reason is not None:
            self._fail(error := self._query.error())
            raise error
        if self._ahead:
            return self._passing(self._ahead.pop(0))
        if self._is_exhausted:
            self._complete()
            raise StopAsyncIteration
        try:
            with self._query.step():
                batch = await self._take_next()
        except StopAsyncIteration:
            self._is_exhausted = True
            self._complete()
            raise
        except BaseException as exc:
            reported = self._query.judged(exc)
            self._fail(reported)
            if reported is not exc:
                raise reported from exc
            raise
        return self._passing(batch)

    def stop(self) -> None:
        """Cancel the query after its reader disconnected, unless it has ended."""
        if self._stream is not None:
            self._query.stop("cancelled")

    def release(self) -> None:
        """Close the engine's stream, which ends the work that feeds it."""
        self._fail(self._query.error() if self._query.reason else None)

    def close(self, error: BaseException | None = None) -> None:
        """Stop reading at any point; does nothing after the last batch."""
        if self._stream is not None:
            self._fail(error)

    async def _take_next(self) -> pa.RecordBatch:
        if self._next is None:
            return await anext(self._batches)
        waiting, self._next = self._next, None
        try:
            batch = await waiting
        except BaseException:
            waiting.cancel()
            raise
        if batch is None:
            raise StopAsyncIteration
        return batch

    def _passing(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.row_count += batch.num_rows
        if self._sample is None and batch.num_rows:
            self._sample = batch if batch.num_rows <= _SAMPLE_ROWS else batch[:_SAMPLE_ROWS]
        if self._kept is not None:
            self._kept_bytes += batch.nbytes
            self._kept.append(batch)
            if self._kept_bytes > self._keep_at_most:
                self._kept = None
                self.on_complete = None
        return batch

    def _complete(self) -> None:
        if self._stream is None:
            return
        if self.offered is not None:
            self.row_count = self.offered.rows_read
        if self.on_complete is not None:
            kept = self._kept or []
            self.on_complete(kept if self._kept_bytes < _SMALL_BYTES else _own(kept))
        self._stream = None
        self.on_end()
        self._finish(None, self.row_count, self._sample)

    def _fail(self, error: BaseException | None) -> None:
        self._let_go()
        self.on_end()
        self._finish(error, self.row_count, self._sample)

    def _let_go(self) -> None:
        self._stream = None
        self._batches = _nothing()
        self._ahead.clear()
        self._kept = None
        if self._next is not None:
            self._next.cancel()
            self._next = None


def _own(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Copy batches that may be in memory that an engine process needs for further rows."""
    sink, schema = pa.BufferOutputStream(), batches[0].schema
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(plain.restored(batch, schema))
    with pa.ipc.open_stream(sink.getvalue()) as reader:
        return list(reader)


async def _fetch(batches: AsyncIterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    # A task must not raise StopAsyncIteration, so None marks the end of the rows.
    return await anext(batches, None)


async def _nothing() -> AsyncIterator[pa.RecordBatch]:
    return
    yield
