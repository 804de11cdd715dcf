"""Rows of a running statement, one batch at a time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

import pyarrow as pa

from caraway_core.errors import QueryError
from caraway_core.ids import TableName
from caraway_engine import frugal
from caraway_engine.statements import Effect

_NOTHING = object()
_PAUSES_S = (0.05, 0.5)
"""Before each try that takes less memory: the work before it ends by itself."""


class _Translate(Protocol):
    def __call__(self, exc: BaseException, *, planning: bool = False) -> QueryError: ...


class EngineStream:
    """Pulls batches from the engine; nothing runs ahead of the reader by more than its buffers.

    Waiting happens on the engine's own threads. Cancelling the wait, or closing, drops the
    engine's stream, which stops the work at the operators' next yield. What it `holds` is in memory
    until then.
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
    ) -> None:
        """Take a stream that has begun, and how to begin one that takes less memory."""
        self._stream: Any = stream
        self._start_again = start_again
        self._translate = translate
        self._holds = holds
        self.schema = schema
        self.is_product = is_product
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
            if isinstance(exc, StopAsyncIteration | asyncio.CancelledError):
                raise
            raise self._translate(exc) from exc
        return batch.to_pyarrow()

    async def _next(self) -> Any:
        """Return the next batch; before the first one, try again where memory is short."""
        start_again, self._start_again = self._start_again, None
        try:
            return await self._stream.__anext__()
        except BaseException as exc:
            if start_again is None or not frugal.may_help(exc):
                raise
        for pause_s in _PAUSES_S:
            # Let go of first: its rows take the memory that is short, and a moment longer.
            self._stream = _NOTHING
            await asyncio.sleep(pause_s)
            self._stream = await asyncio.to_thread(start_again)
            try:
                return await self._stream.__anext__()
            except BaseException as exc:
                if pause_s == _PAUSES_S[-1] or not frugal.may_help(exc):
                    raise
        raise AssertionError("unreachable")

    async def aclose(self) -> None:
        self._end(is_whole=False)

    def __del__(self) -> None:
        self._end(is_whole=False)

    def _end(self, *, is_whole: bool) -> None:
        """Let go of the engine's stream, and tell once whether it was read to its end."""
        if self._stream is not None:
            self._stream = self._holds = self._start_again = None
            self.on_end(is_whole)
