"""Streams the rows of a running statement, one batch at a time."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

import pyarrow as pa

from caraway_core.backoff import Delays
from caraway_core.errors import QueryError
from caraway_core.ids import TableName
from caraway_engine.execution import frugal
from caraway_engine.statements.statements import Effect

_NOTHING = object()
_TRIES = 2
_DELAYS = Delays(0.05, 0.5, factor=10.0)
"""The delays before retries with less memory, in which the work of the failed attempt ends."""


class _Translate(Protocol):
    def __call__(self, exc: BaseException, *, planning: bool = False) -> QueryError: ...


class OwnStream(ABC):
    """A stream of batches that is not the engine's, and must be closed explicitly."""

    @abstractmethod
    async def __anext__(self) -> Any: ...

    @abstractmethod
    def close(self) -> None:
        """Cancel what is running; never blocks."""


class EngineStream:
    """Pulls batches from the engine, which runs ahead of the reader only by its buffers.

    Waiting happens on the engine's own threads. Cancelling the wait, or closing, drops the engine's
    stream. The work then stops at the operators' next yield. The object in `holds` is kept until
    then.
    """

    def __init__(
        self,
        stream: Any,
        schema: pa.Schema,
        effect: Effect,
        is_product: bool,
        translate: _Translate,
        holds: object = None,
        start_again: Callable[[], Any] | None = None,
        *,
        is_waiting: bool = False,
    ) -> None:
        """Take a started stream, and the callable that starts one that uses less memory.

        If `is_waiting`, threads of the engine may block on a database while the stream is read.
        """
        self._stream: Any = stream
        self._start_again = start_again
        self._translate = translate
        self._holds = holds
        self.schema = schema
        self.is_product = is_product
        self.is_waiting = is_waiting
        self.on_end: Callable[[bool], None] = lambda _is_whole: None
        self.reads_only_catalog = effect.reads_only_catalog
        self.written: TableName | None = effect.written

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if self._stream is None:
            raise StopAsyncIteration
        try:
            batch = await self._next()
        except BaseException as exc:
            self._end(is_whole=not isinstance(exc, asyncio.CancelledError))
            if isinstance(exc, asyncio.CancelledError):
                raise
            # The engine may let go of its exception only when it is called again, perhaps never.
            # Until then the frames of a traceback would hold the session and its rows.
            exc.__traceback__ = None
            if isinstance(exc, StopAsyncIteration):
                raise StopAsyncIteration from None
            raise self._translate(exc) from exc
        return batch.to_pyarrow()

    async def _next(self) -> Any:
        """Return the next batch. Before the first one, retry if memory is exhausted."""
        start_again, self._start_again = self._start_again, None
        try:
            return await self._stream.__anext__()
        except BaseException as exc:
            if start_again is None or not frugal.may_help(exc):
                raise
        for failures in range(1, _TRIES + 1):
            # Drop the failed stream first: its rows use the memory that is short, for a moment
            # longer.
            self._stream = _NOTHING
            await asyncio.sleep(_DELAYS.delay_s(failures))
            self._stream = await asyncio.to_thread(start_again)
            try:
                return await self._stream.__anext__()
            except BaseException as exc:
                if failures == _TRIES or not frugal.may_help(exc):
                    raise
        raise AssertionError("unreachable")

    async def aclose(self) -> None:
        """Stop the stream and release the engine's resources."""
        self._end(is_whole=False)

    def __del__(self) -> None:
        self._end(is_whole=False)

    def _end(self, *, is_whole: bool) -> None:
        """Release the engine's stream, and report once whether it was read to its end."""
        if self._stream is not None:
            if isinstance(self._stream, OwnStream):
                self._stream.close()
            self._stream = self._holds = self._start_again = None
            self.on_end(is_whole)
