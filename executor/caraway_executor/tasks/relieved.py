"""Runs statements and tasks in this process, or in another one while its threads take no work."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from caraway_core.concurrency import tasks
from caraway_core.errors import (
    CatalogMovedError,
    OutOfMemoryQueryError,
    ShuttingDownError,
    UnavailableError,
)
from caraway_core.ids import QueryId, TableName
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Task, TaskTable
from caraway_core.protocols.wrapped_streams import WrappedStream
from caraway_core.statements import Statement
from caraway_core.work import SubstraitFragment
from caraway_engine.sessions.lookups import PointLookup
from caraway_engine.sessions.sessions import Session
from caraway_executor.engines.relief import Relief
from caraway_executor.engines.rerunning import check_columns
from caraway_executor.resources.starving import LeftError, OwnThreads, Stay
from caraway_executor.statements.local import LocalExecutor

_MOST_INPUT_BYTES = 64 * 1024 * 1024
"""A task with larger inputs stays, because it would take long to send them."""
_AT_ONCE_S, _HELD_S = 0.002, 2.0
"""The wait for more rows or the end after the first rows, before and after the threads are asked
for a statement that takes no time."""
Here = Callable[[], Awaitable[BatchStream]]
There = Callable[[bool], Awaitable[BatchStream]]
"""Starts work in another process; alone there, if it may be what keeps the threads of this one."""


class RelievedExecutor:
    """The executor of one catalog, and the other engine processes that relieve it.

    Work that writes, work in the background and searches by an index never leave this process, nor
    does what reads tables in memory that were written to.
    """

    def __init__(
        self,
        local: LocalExecutor,
        relief: Relief | None,
        threads: OwnThreads,
        written: set[TableName],
    ) -> None:
        """Take the tables in memory that were written to, which belong to all catalogs."""
        self._local = local
        self._relief = relief
        self._threads = threads
        self._written = written

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Run a statement; see `LocalExecutor.execute`."""
        here, relief = partial(self._local.execute, query_id, statement), self._relief
        if relief is None or not self._may_leave(statement):
            return await self._begun(_Ways(here, None, has_names=True))

        async def there(is_suspect: bool) -> BatchStream:
            catalog = self._newest.snapshot
            return await relief.execute(catalog, query_id, statement, is_suspect=is_suspect)

        return await self._begun(_Ways(here, there, has_names=True))

    async def run_task(
        self, task: Task, inputs: Sequence[TaskTable], *, is_here: bool = True
    ) -> BatchStream:
        """Run a task; see `LocalExecutor.run_task`. Without a slot here, it begins elsewhere."""
        here, relief = partial(self._local.run_task, task, inputs), self._relief
        if relief is None or not may_task_leave(task, inputs):
            return await self._begun(_Ways(here, None, has_names=False))

        async def there(is_suspect: bool) -> BatchStream:
            catalog = self._newest.snapshot
            if task.catalog_version != catalog.version:
                raise CatalogMovedError(task.catalog_version)
            return await relief.run_task(catalog, task, inputs, is_suspect=is_suspect)

        return await self._begun(_Ways(here, there, has_names=False), is_here=is_here)

    async def _begun(self, ways: "_Ways", *, is_here: bool = True) -> BatchStream:
        stay = Stay(self._threads)
        stay.can_leave = ways.there is not None
        if is_here:
            stream = await ways.begin_work(stay)
        else:
            stream = await ways.move(LeftError(is_suspect=False), stay)
        if stream.written is not None:
            self._written.add(stream.written)
            stay.can_leave = False
        return RelievedStream(stream, stay, ways)

    def _may_leave(self, statement: Statement) -> bool:
        if statement.store is not None or statement.in_background or statement.index is not None:
            return False
        # No thread of the engine computes a point lookup.
        is_lookup = isinstance(self._newest.lookups.find(statement), PointLookup)
        return not is_lookup and not self._reads_written(statement.sql)

    @property
    def _newest(self) -> Session:
        session = self._local.session
        if session is None:
            raise ShuttingDownError("the executor has no catalog yet")
        return session

    def _reads_written(self, sql: str) -> bool:
        """Return whether a statement may read a table in memory that was written to."""
        if not self._written:
            return False
        names = {_last(name) for name in self._written}
        tables = self._newest.snapshot.tables
        views = {_last(name): spec.query for name, spec in tables.items() if spec.query}
        for _ in views:
            names |= {name for name, query in views.items() if _has_any(query, names)}
        return _has_any(sql, names)


@dataclass(frozen=True, slots=True)
class _Ways:
    """The ways to start work: in this process, and in another one if it may run there."""

    here: Here
    there: There | None
    has_names: bool
    """True if its columns are also checked by their names."""

    async def begin_work(self, stay: Stay) -> BatchStream:
        """Start the work where its turn comes first."""
        try:
            with stay.waiting():
                return await self.here()
        except LeftError as left:
            return await self.move(left, stay)

    async def move(self, left: LeftError, stay: Stay) -> BatchStream:
        """Start the work in another process, or wait here if that is not possible."""
        assert self.there is not None
        stay.can_leave = False
        try:
            return await self.there(left.is_suspect)
        except (CatalogMovedError, OutOfMemoryQueryError, UnavailableError):
            # Other processes have the newest catalog alone.
            with stay.waiting():
                return await self.here()


class RelievedStream(WrappedStream):
    """The rows of work that may move to another process until it has passed on rows."""

    def __init__(self, stream: BatchStream, stay: Stay, ways: _Ways) -> None:
        super().__init__(stream)
        self._stay = stay
        self._ways = ways
        self._following: asyncio.Task[pa.RecordBatch] | None = None

    async def __anext__(self) -> pa.RecordBatch:
        try:
            with self._stay.waiting():
                batch = await self._next_batch()
                if self._stay.can_leave and not self._stream.is_at_end:
                    await self._hold()
        except LeftError as left:
            await self.aclose()
            traits = self.traits
            self._stream = await self._ways.move(left, self._stay)
            self._stream.traits.read_as(traits)
            await check_columns(self._stream, self.schema, has_names=self._ways.has_names)
            self._batches = aiter(self._stream)
            batch = await anext(self._batches)
        self._stay.can_leave = False
        return batch

    async def aclose(self) -> None:
        """Close the stream, also while more rows are awaited."""
        following, self._following = self._following, None
        if following is not None:
            following.cancel()
            await asyncio.wait((following,))
        await super().aclose()

    async def _next_batch(self) -> pa.RecordBatch:
        following, self._following = self._following, None
        return await (anext(self._batches) if following is None else following)

    async def _following_batch(self) -> pa.RecordBatch:
        return await anext(self._batches)

    async def _hold(self) -> None:
        """Keep the first rows until more or the end follow, or the threads take other work.

        Native code may keep all threads from the end. The work can run again elsewhere only as long
        as none of its rows were passed on.
        """
        self._following = tasks.begin(self._following_batch(), "read ahead")
        await asyncio.wait((self._following,), timeout=_AT_ONCE_S)
        if not self._following.done():
            await self._stay.until_free(self._following, _HELD_S)


def may_task_leave(task: Task, inputs: Sequence[TaskTable]) -> bool:
    """Return whether another process can run a task as well."""
    if task.store is not None or task.in_background or not isinstance(task.work, SubstraitFragment):
        return False
    size_bytes: int = sum(table.nbytes for each in inputs for table in each.tables)
    return size_bytes <= _MOST_INPUT_BYTES


def _last(name: TableName) -> str:
    return name.rpartition(".")[2].lower()


def _has_any(sql: str, names: set[str]) -> bool:
    text = sql.lower()
    return any(name in text for name in names)
