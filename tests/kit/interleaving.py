"""An event loop on which a test chooses the next task: no clock, no threads, no sockets.

Code under test waits at `step`. When no task is ready, the test's numbers choose what happens next:
one of the waiting tasks continues, or the next timer fires. The same numbers give the same
interleaving in any process, so a property test can search for one that fails.
"""

import asyncio
import hashlib
import random
import selectors
import sqlite3
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pyarrow as pa

from caraway_core.errors import ExecutionError, StateUnsureError
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.state import StateEntry
from caraway_plugins.stores.sqlite import entries, file
from caraway_plugins.stores.sqlite.entries import ConditionalWrite
from caraway_plugins.stores.watching import ChangePage, StateWatcher

Choose = Callable[[int], int]
"""Chooses one of a number of options, counted from 0."""
MOST_STEPS = 20_000
NEAR_S = 60.0
"""A timer further away fires only when no task can continue."""


class DeadlockError(AssertionError):
    """No task can continue, and no timer is set."""


class SteppedLoop(asyncio.SelectorEventLoop):
    """Runs ready tasks in order; the test chooses among those that wait at `step`."""

    def __init__(self, choose: Choose, *, steps_take_time: bool = True) -> None:
        """Without `steps_take_time`, a timer fires only when no task waits at `step`."""
        self._now = 1000.0
        self.steps_take_time = steps_take_time
        self._steps: list[asyncio.Future[None]] = []
        self._choose = choose
        self.taken = 0
        self.on_choice: Callable[[int], None] = lambda _choices: None
        self._tasks: list[asyncio.Task[Any]] = []
        super().__init__(_Idle(self._idle))

    def create_task(self, coro: Any, **named: Any) -> "asyncio.Task[Any]":
        task = super().create_task(coro, **named)
        self._tasks.append(task)
        return task

    def left(self) -> list["asyncio.Task[Any]"]:
        """Return the unfinished tasks, in the order of their start.

        `asyncio.all_tasks` is a set, and its order depends on addresses.
        """
        return [task for task in self._tasks if not task.done()]

    def time(self) -> float:
        return self._now

    async def step(self) -> None:
        """Wait until the test lets this task continue."""
        mine = self.create_future()
        self._steps.append(mine)
        await mine

    def run_in_executor(  # type: ignore[override] # here nothing runs in another thread
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        outcome = self.create_future()
        try:
            outcome.set_result(func(*args))
        except Exception as exc:
            outcome.set_exception(exc)
        return outcome

    def _idle(self, timeout: float | None) -> None:
        self._steps = [each for each in self._steps if not each.done()]
        is_near = self.steps_take_time and timeout is not None and timeout <= NEAR_S
        choices = len(self._steps) + is_near
        if not self._steps and timeout is None:
            raise DeadlockError("nobody can go on, and no timer is set")
        self.taken += 1
        if self.taken > MOST_STEPS:
            raise DeadlockError(f"not at an end after {MOST_STEPS} steps")
        self.on_choice(choices)
        chosen = self._choose(choices) if self._steps else 0
        if chosen < len(self._steps):
            self._steps.pop(chosen).set_result(None)
        else:
            assert timeout is not None
            self._now += timeout + 1e-6


class _Idle(selectors.SelectSelector):
    """A selector that never blocks, and signals when the loop has nothing to run."""

    def __init__(self, idle: Callable[[float | None], None]) -> None:
        super().__init__()
        self._idle = idle

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or timeout > 0:
            self._idle(timeout)
        return []


def run(
    work: Callable[[SteppedLoop], Coroutine[Any, Any, None]],
    choose: Choose,
    *,
    steps_take_time: bool = True,
) -> None:
    """Run a test on its own loop; remaining tasks are cancelled."""
    loop = SteppedLoop(choose, steps_take_time=steps_take_time)
    with _same_chances():
        try:
            loop.run_until_complete(work(loop))
        finally:
            left = loop.left()
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


@contextmanager
def _same_chances() -> Iterator[None]:
    """Make random numbers and ids repeatable; keys contain ids and are processed in order."""
    ids, before = random.Random(1), random.getstate()

    def uuid4() -> uuid.UUID:
        return uuid.UUID(int=ids.getrandbits(128), version=4)

    random.seed(1)
    try:
        with mock.patch("uuid.uuid4", uuid4):
            yield
    finally:
        random.setstate(before)


class SteppedStore:
    """The embedded state store without threads; each call waits before and after its work.

    `loses` decides for each write whether its response is lost, as in an outage of the server.
    """

    def __init__(self, loop: SteppedLoop, loses: Callable[[str], bool] = lambda _key: False):
        self._loop = loop
        self._loses = loses
        self._file = sqlite3.connect(":memory:", isolation_level=None)
        for statement in file._TABLES:
            self._file.execute(statement)
        self._watchers: list[StateWatcher] = []

    def close(self) -> None:
        self._file.close()

    def peek(self, key: str) -> StateEntry | None:
        """Return an entry without waiting, for the test itself."""
        return entries.get(self._file, key, self._loop.time())

    async def check(self) -> Sequence[str]:
        return ()

    async def get(self, key: str) -> StateEntry | None:
        await self._loop.step()
        found = entries.get(self._file, key, self._loop.time())
        await self._loop.step()
        return found

    async def revisions(self, keys: Sequence[str]) -> Sequence[int]:
        await self._loop.step()
        found = entries.revisions(self._file, keys, self._loop.time())
        await self._loop.step()
        return found

    async def scan(self, prefix: str) -> Sequence[StateEntry]:
        await self._loop.step()
        found = entries.scan(self._file, prefix, self._loop.time())
        await self._loop.step()
        return found

    async def compare_and_set(
        self, key: str, value: bytes | None, *, expected: int | None, ttl_s: float | None = None
    ) -> int | None:
        await self._loop.step()
        write = ConditionalWrite(key, value, expected, ttl_s)
        revision = entries.compare_and_set(self._file, write, self._loop.time())
        if revision is not None:
            for watcher in self._watchers:
                watcher.wake()
        await self._loop.step()
        if self._loses(key):
            raise StateUnsureError("the answer was lost")
        return revision

    async def append(self, log: str, record: bytes) -> int:
        raise NotImplementedError

    async def read_log(self, log: str, start: int, limit: int) -> Sequence[bytes]:
        raise NotImplementedError

    def watch(self, prefix: str) -> StateWatcher:
        # Only writes wake it: virtual time does not stand still while something polls.
        watcher = StateWatcher(prefix, self, entries.revision(self._file), poll_s=None)
        self._watchers.append(watcher)
        return watcher

    async def read_start(self, submitted: int) -> int:
        return submitted

    async def read_changes(self, prefix: str, after: int) -> ChangePage:
        await self._loop.step()
        return entries.changes(self._file, prefix, after, self._loop.time())

    async def read_revision(self) -> int:
        await self._loop.step()
        return entries.revision(self._file)

    async def aclose(self) -> None:
        pass


class SteppedResults:
    """A result store in memory; each call waits before its work."""

    def __init__(self, loop: SteppedLoop) -> None:
        self._loop = loop
        self.chunks: dict[str, dict[int, pa.Table]] = {}
        self.deleted: set[str] = set()

    async def check(self) -> None:
        pass

    async def write_chunk(
        self,
        key: str,
        index: int,
        schema: pa.Schema,
        batches: Sequence[pa.RecordBatch],
        checksum: str = "",
    ) -> ChunkInfo:
        await self._loop.step()
        rows = pa.Table.from_batches(batches, schema)
        self.chunks.setdefault(key, {})[index] = rows
        digest = hashlib.sha256(f"{key}/{index}".encode()).hexdigest()
        return ChunkInfo(index, rows.num_rows, rows.nbytes, digest)

    async def read_chunk(self, key: str, chunk: ChunkInfo) -> AsyncIterator[pa.RecordBatch]:
        await self._loop.step()
        for batch in self.rows(key, chunk).to_batches():
            yield batch

    def rows(self, key: str, chunk: ChunkInfo) -> pa.Table:
        """Return the rows of a chunk without waiting, for the test itself.

        Raises:
            ExecutionError: the chunk was deleted.
        """
        held: Mapping[int, pa.Table] = self.chunks.get(key, {})
        if chunk.index not in held:
            raise ExecutionError(f"the chunk {key}/{chunk.index} is not there")
        return held[chunk.index]

    async def delete(self, key: str) -> None:
        await self._loop.step()
        self.chunks.pop(key, None)
        self.deleted.add(key)

    async def keys(self) -> Sequence[str]:
        await self._loop.step()
        return sorted(self.chunks)
