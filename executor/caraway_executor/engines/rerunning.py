"""Streams that survive the end of their engine process."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

import pyarrow as pa

from caraway_core.errors import AnswerCutError, CarawayError
from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.wrapped_streams import WrappedStream
from caraway_executor.engines.causes import Cause, EngineLostError, EngineMovedError


class EngineEnded(Protocol):
    """Called once when a stream ends, with whether it was read completely."""

    def __call__(self, *, is_whole: bool) -> None: ...


FindCommit = Callable[[TableName, str], Awaitable[int | None]]
"""Returns how many rows the commit with a mark wrote to a table; None: there is none."""


class RerunStream(WrappedStream):
    """Reads a stream, and restarts it once if its engine ends before the first row.

    A write does not run twice; its commit is looked up.
    """

    def __init__(
        self,
        stream: BatchStream,
        again: Callable[[EngineLostError], Awaitable[BatchStream]],
        ended: EngineEnded,
        *,
        has_names: bool = True,
        find_commit: FindCommit | None = None,
    ) -> None:
        """Take a stream, and what starts it again after the error that ended it.

        Without names that mean something, as in tasks, columns are compared by their types.
        """
        self._has_names = has_names
        super().__init__(stream)
        self._again: Callable[[EngineLostError], Awaitable[BatchStream]] | None = again
        self._has_rows = False
        self._ended: EngineEnded | None = ended
        self._find_commit = find_commit

    async def __anext__(self) -> pa.RecordBatch:
        try:
            batch = await self._next()
        except StopAsyncIteration:
            self._end(is_whole=True)
            raise
        except BaseException:
            self._end(is_whole=False)
            raise
        self._again, self._has_rows = None, True
        return batch

    async def aclose(self) -> None:
        """Cancel the stream."""
        self._end(is_whole=False)
        await self._stream.aclose()

    def __del__(self) -> None:
        self._end(is_whole=False)

    async def _next(self) -> pa.RecordBatch:
        while True:
            try:
                return await anext(self._batches)
            except EngineLostError as exc:
                if exc.mark and exc.cause is not Cause.CLOSED:
                    self._batches = aiter(_only(await self._committed(exc)))
                    continue
                stream = await self._rerun(exc)
            await check_columns(stream, self.schema, has_names=self._has_names)
            stream.traits.read_as(self.traits)
            self._stream, self._batches = stream, aiter(stream)

    async def _rerun(self, exc: EngineLostError) -> BatchStream:
        again = self._again
        if not isinstance(exc, EngineMovedError):
            # Only a statement that may have caused the end counts how often it runs.
            self._again = None
        if again is None or self.written is not None or exc.cause is Cause.CLOSED:
            raise self._told(exc, had_rows=self._has_rows) from exc
        try:
            return await again(exc)
        except EngineLostError as lost:
            raise self._told(lost, had_rows=False) from lost

    async def _committed(self, exc: EngineLostError) -> pa.RecordBatch:
        """Return the result of a write whose commit is there."""
        if self.written is None or self._find_commit is None or self._has_rows:
            raise self._told(exc, had_rows=self._has_rows) from exc
        try:
            count = await self._find_commit(self.written, exc.mark)
        except CarawayError:
            raise self._told(exc, had_rows=False) from exc
        if count is None:
            raise exc.told(wrote=True, is_absent=True) from exc
        column = pa.array([count], self.schema.types[0])
        return pa.RecordBatch.from_arrays([column], schema=self.schema)

    def _told(self, exc: EngineLostError, *, had_rows: bool) -> CarawayError:
        if had_rows and self.written is None and exc.cause is not Cause.MEMORY:
            return AnswerCutError(
                "the engine ended while the result was read; run the statement again"
            )
        return exc.told(wrote=self.written is not None)

    def _end(self, *, is_whole: bool) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(is_whole=is_whole)


async def _only(batch: pa.RecordBatch) -> AsyncIterator[pa.RecordBatch]:
    yield batch


async def check_columns(stream: BatchStream, schema: pa.Schema, *, has_names: bool) -> None:
    """Close a stream whose columns are not those of the stream that it replaces.

    Raises:
        AnswerCutError: they are others.
    """
    is_same = stream.schema == schema if has_names else stream.schema.types == schema.types
    if not is_same:
        await stream.aclose()
        raise AnswerCutError("the catalog changed while the statement was run again; run it again")
