"""Streams the rows of a running statement, one batch at a time."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import QueryError
from caraway_core.ids import TableName
from caraway_core.process import logs
from caraway_core.protocols.dispatch import StreamTraits
from caraway_core.protocols.profiles import OperatorProfile
from caraway_engine.execution import frugal
from caraway_engine.execution.crowd import Crowd
from caraway_engine.statements.statements import Effect

_NOTHING = object()
_TRIES = 2
_DELAYS = Delays(0.05, 0.5, factor=10.0)
"""The delays before retries with less memory, in which the work of the failed attempt ends."""


OnWhole = Callable[[int, int, float], None]
"""Takes the number of batches of a stream, their size, and how many seconds they took."""
_MOST_TEXT = 160


@dataclass(frozen=True, slots=True)
class RowsAhead:
    """The batches that were read of a stream, and whether it has ended."""

    batches: tuple[pa.RecordBatch, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class StartedPlan:
    """A plan whose stream was started, and what is known of it.

    If `is_waiting`, threads of the engine may block on a database or a model while the stream is
    read. `holds` is kept as long as the stream. `start_again` starts one that uses less memory, and
    `read` are the rows that were read of the stream already.
    """

    stream: Any
    schema: pa.Schema
    effect: Effect
    is_product: bool = False
    is_waiting: bool = False
    holds: object = None
    start_again: Callable[[], object] | None = None
    read: RowsAhead | None = None


class _Translate(Protocol):
    def __call__(self, exc: BaseException, *, planning: bool = False) -> QueryError: ...


class OwnStream(ABC):
    """A stream of batches that is not the engine's, and must be closed explicitly."""

    @abstractmethod
    async def __anext__(self) -> Any: ...

    @abstractmethod
    def close(self) -> None:
        """Cancel the statement; never blocks."""


class EngineStream:
    """Pulls batches from the engine, which runs ahead of the reader only by its buffers.

    Waiting happens on the engine's own threads. Cancelling the wait, or closing, drops the engine's
    stream. The work then stops at the operators' next yield.
    """

    def __init__(
        self,
        started: StartedPlan,
        translate: _Translate,
        *,
        on_whole: OnWhole | None = None,
        crowd: Crowd | None = None,
    ) -> None:
        """`on_whole` is called once when the stream was read to its end.

        The stream counts in the `crowd` while a batch is computed.
        """
        # Not `started` itself: what it holds has to go when the stream ends.
        read = started.read
        self._stream: Any = started.stream
        self._crowd = crowd if crowd is not None else Crowd(1)
        self._start_again = started.start_again
        self._translate = translate
        # The reader of the stream may not know the statement, and errors are logged.
        self._ids = logs.query_id.get(), logs.trace_id.get()
        self._holds = started.holds
        self.schema = started.schema
        self.is_product = started.is_product
        self.is_waiting = started.is_waiting
        if self.is_waiting:
            self._crowd.note_waiting(self)
        self.on_end: Callable[[bool], None] = lambda _is_whole: None
        self.reads_only_catalog = started.effect.reads_only_catalog
        self.written: TableName | None = started.effect.written
        self._read = deque(read.batches if read is not None else ())
        self._on_whole = on_whole
        self._batches = self._size_bytes = 0
        self._began_s = time.monotonic()
        if read is not None and read.is_whole:
            self._end(is_whole=True)
        is_whole = self._stream is None and len(self._read) == 1
        self.traits = StreamTraits(whole=self._read[0] if is_whole else None)

    @property
    def is_at_end(self) -> bool:
        """True if all rows were read."""
        return self._stream is None and not self._read

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if self._read:
            self.traits.whole = None
            return self._read.popleft()
        if self._stream is None:
            raise StopAsyncIteration
        try:
            with self._crowd.entered(self):
                batch = await self._next()
        except BaseException as exc:
            if isinstance(exc, StopAsyncIteration):
                self._note_whole()
            self._end(is_whole=not isinstance(exc, asyncio.CancelledError))
            if isinstance(exc, asyncio.CancelledError):
                raise
            # The engine may let go of its exception only when it is called again, perhaps never.
            # Until then the frames of a traceback would hold the session and its rows.
            exc.__traceback__ = None
            if isinstance(exc, StopAsyncIteration):
                raise StopAsyncIteration from None
            with logs.about(*self._ids):
                raise self._translate(exc) from exc
        rows = batch.to_pyarrow()
        self._batches += 1
        self._size_bytes += rows.nbytes
        return rows

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

    def _note_whole(self) -> None:
        if self._on_whole is not None:
            self._on_whole(self._batches, self._size_bytes, time.monotonic() - self._began_s)

    async def aclose(self) -> None:
        """Stop the stream and release the engine's resources."""
        self._end(is_whole=False)

    def __del__(self) -> None:
        self._end(is_whole=False)

    def _end(self, *, is_whole: bool) -> None:
        """Release the engine's stream, and report once whether it was read to its end."""
        if not is_whole:
            self._read.clear()
            self.traits.whole = None
        if self._stream is not None:
            if isinstance(self._stream, OwnStream):
                self._stream.close()
            self._stream = self._holds = self._start_again = self._on_whole = None
            self._crowd.end_waiting(self)
            self.on_end(is_whole)


def operators(plan: object) -> tuple[OperatorProfile, ...]:
    """Return the metrics of each operator of an executed plan, from the last to the scans."""
    return tuple(_operators(plan, 0))


def _operators(plan: Any, depth: int) -> Iterator[OperatorProfile]:
    measured = plan.metrics()
    added: Counter[str] = Counter()
    for each in measured.metrics() if measured is not None else ():
        if isinstance(each.value, int):
            added[each.name] += each.value
    yield OperatorProfile(plan.display().strip()[:_MOST_TEXT], depth, dict(added))
    for child in plan.children():
        yield from _operators(child, depth + 1)
