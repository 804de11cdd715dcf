"""Keeps statements that crash executors from crashing more of them."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from caraway_core import suspects
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.ids import ExecutorId, QueryId
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.statements import Statement
from caraway_core.suspects import End, Suspects, SuspectTurns
from caraway_scheduler.dispatch.wrappers.pins import PinnedStream

Ends = Callable[[], Mapping[ExecutorId, tuple[str, End | None]]]
"""Returns for each executor its current process, and how the previous one ended."""
Run = Callable[[], Coroutine[Any, Any, BatchStream]]
OnLoss = Callable[[QueryId, ExecutorId], Coroutine[Any, Any, None]]
"""Called with an executor that a statement lost; returns when the statement may run again."""
_LOSSES = 2
"""The number of executors that a statement may lose before it waits for the cause."""
_SETTLED_S = 6.0
_REMEMBERED_S = 15.0


@dataclass(slots=True)
class _Running:
    """A statement that runs on executors, and the executors that it has lost."""

    key: str
    returns: int
    lost: set[tuple[ExecutorId, str]] = field(default_factory=set)
    has_ended: bool = False
    """True if its answer was read completely."""


class Quarantine:
    """Tracks which statements run on executors, and blames them for crashes.

    An executor that was lost with its machine reports no cause when it returns. Then no statement
    is blamed.
    """

    def __init__(
        self,
        ends: Ends,
        clock: SecondsClock = time.time,
        settled_s: float = _SETTLED_S,
    ) -> None:
        self.suspects = Suspects(clock)
        self._ends = ends
        self._clock = clock
        self._settled_s = settled_s
        self._turns = SuspectTurns(self.suspects)
        self._running: dict[QueryId, _Running] = {}
        self._left: dict[str, float] = {}
        """When statements failed or were stopped, possibly before a crash was reported.
        """
        self._seen: dict[ExecutorId, str] = {}
        self._returns = 0
        self._returned = asyncio.Event()

    async def run_statement(self, query_id: QueryId, statement: Statement, run: Run) -> BatchStream:
        """Run a statement on executors; a suspect waits for its turn.

        Raises:
            StatementRefusedError: the statement has crashed executors.
        """
        key = suspects.key(statement.sql, statement.parameters)
        over = await self._turns.await_turn(key)
        running = self._running[query_id] = _Running(key, self._returns)
        turn = _Turn(self, query_id, running, over)
        try:
            stream = await run()
        except BaseException:
            turn.release()
            raise
        return _Watched(stream, turn)

    def _leave(self, query_id: QueryId, running: _Running) -> None:
        self._running.pop(query_id, None)
        if not running.has_ended:
            self._left[running.key] = self._clock()

    def _answered(self, running: _Running) -> None:
        running.has_ended = True
        if not running.lost:
            self.suspects.cleared(running.key)

    async def lost(self, query_id: QueryId, executor_id: ExecutorId) -> None:
        """Record that a statement lost an executor; returns when it may run again.

        Raises:
            StatementRefusedError: the statement must not run again.
        """
        running = self._running.get(query_id)
        if running is None:
            return
        running.lost.add((executor_id, self._seen.get(executor_id, "")))
        if len(running.lost) < _LOSSES:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settled_s):
                while self._returns - running.returns < len(running.lost):
                    self._returned.clear()
                    await self._returned.wait()
        self.suspects.check(running.key)

    def look(self) -> None:
        """Check which executors have returned, and blame statements for what ended them."""
        for executor_id, (incarnation, end) in self._ends().items():
            before = self._seen.get(executor_id)
            self._seen[executor_id] = incarnation
            if before in (None, incarnation):
                continue
            self._returns += 1
            self._returned.set()
            if end is not None:
                self._blame(end)

    def _blame(self, end: End) -> None:
        since = self._clock() - _REMEMBERED_S
        self._left = {key: left for key, left in self._left.items() if left > since}
        keys = Counter([*(each.key for each in self._running.values()), *self._left])
        if keys:
            self.suspects.ended(keys, end)


@dataclass(frozen=True, slots=True)
class _Turn:
    """A statement that runs, as its stream knows it."""

    quarantine: Quarantine
    query_id: QueryId
    running: _Running
    over: Callable[[], None]

    def release(self) -> None:
        """Note that the statement runs no more, and let the next suspect run."""
        self.quarantine._leave(self.query_id, self.running)
        self.over()

    def answered(self) -> None:
        """Note that the answer was read completely."""
        self.quarantine._answered(self.running)


class _Watched(PinnedStream):
    """A stream that reports when it was read completely."""

    def __init__(self, stream: BatchStream, turn: _Turn) -> None:
        super().__init__(stream, turn)
        self._turn = turn

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        try:
            return await anext(self._batches)
        except BaseException as exc:
            if isinstance(exc, StopAsyncIteration):
                self._turn.answered()
            self._release()
            raise
