"""The executor that runs statements in its own process."""

import asyncio
import contextlib
import contextvars
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal, TypeVar, cast

import pyarrow as pa

from caraway_core.changes import Log
from caraway_core.errors import ExecutionError, NotDistributableError
from caraway_core.ids import CatalogVersion, QueryId, TableName, new_query_id
from caraway_core.process import logs, write_marks
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Pinned, Task, TaskTable
from caraway_core.protocols.results import ChunkWriter
from caraway_core.protocols.storing import StoreOrder
from caraway_core.statements import CatalogSnapshot, Statement, ViewFacts
from caraway_core.statements.questions import (
    Answer,
    CommitQuestion,
    SearchQuestion,
    StatementQuestion,
)
from caraway_core.tables import StoredTable
from caraway_engine.execution import processes
from caraway_engine.execution.contexts import Pools, quoted
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.execution.streams import EngineStream
from caraway_engine.execution.threads import Probe
from caraway_engine.rows.held import Chunk
from caraway_engine.sessions.sessions import Session
from caraway_engine.stored import ChunksAwayError, MissingChunks
from caraway_executor.indexes.running import IndexedSearches
from caraway_executor.resources.room import TaskMemory
from caraway_executor.statements.elsewhere import RunsApartError, RunsInMainError
from caraway_executor.statements.kept_sessions import KeptSessions
from caraway_executor.statements.looking_up import RowsStream, look_up
from caraway_executor.statements.products import Products
from caraway_executor.storage.chunks import KeptChunks
from caraway_executor.storage.stores import Stores
from caraway_executor.storage.storing import StoringStream

_PLANNING_THREADS = 8
Role = Literal["alone", "main", "apart"]
_Result = TypeVar("_Result")


class LocalExecutor:
    """Runs statements with the engine of this process.

    A new snapshot becomes a new session. Running statements keep the session that they started
    with, so their tables do not change.
    """

    def __init__(
        self,
        settings: EngineSettings,
        stores: Stores | None = None,
        chunks: KeptChunks | None = None,
        name: str = "",
        *,
        role: Role = "alone",
        planning: ThreadPoolExecutor | None = None,
        may_block: bool = False,
    ) -> None:
        """Take what executors of one process share; `name` is the executor's name in a cluster.

        In the role "main", it refuses products and statements whose engine threads may wait for a
        database. An executor in the role "apart" runs these, but does not write to tables in
        memory. If the event loop `may_block` for a moment, because nothing else needs it at once,
        statements that take no longer than to wake a thread run on it.
        """
        processes.prepare()
        self._may_block = may_block
        self._role = role
        self.registering: Callable[[TableName | None], None] = lambda _view: None
        """Called with each view before it is planned, and with None afterwards."""
        self._name = name
        self._stores = stores or Stores()
        self._chunks = chunks or KeptChunks(
            self._stores, TaskMemory(settings.memory_limit_bytes), settings.chunks_directory
        )
        self._searches = IndexedSearches(self._chunks, settings)
        empty = partial(Session, settings, chunks=self._chunks, pools=Pools(settings))
        self._sessions = KeptSessions(empty, settings.target_partitions)
        self._probe = Probe()
        self._products = Products(max(1, settings.target_partitions - 1))
        # Planning lists files and may block on a remote store. It has its own threads, so that slow
        # planning never delays the encoding of results.
        self._planning = planning or ThreadPoolExecutor(
            _PLANNING_THREADS, thread_name_prefix="planning"
        )

    @property
    def session(self) -> Session | None:
        """The session that new statements use."""
        return self._sessions.newest

    @property
    def prepared_views(self) -> Mapping[TableName, ViewFacts]:
        """The facts of the views in the catalog that was prepared but not yet published."""
        return self._sessions.prepared_views

    @property
    def views(self) -> Mapping[TableName, ViewFacts]:
        """The facts of the views in the catalog that new statements see."""
        return {} if self.session is None else self.session.views

    def install(
        self, snapshot: CatalogSnapshot, others: Sequence["LocalExecutor"] = ()
    ) -> Mapping[TableName, str]:
        """Install a snapshot, and reuse unchanged tables from the last one or from `others`."""
        failed = self.prepare(snapshot, others)
        self.publish()
        self.release(None)
        return failed

    def prepare(
        self, snapshot: CatalogSnapshot, others: Sequence["LocalExecutor"] = ()
    ) -> Mapping[TableName, str]:
        """Register a snapshot; statements see it after `publish`."""
        return self._sessions.prepare(
            snapshot, [each._sessions for each in others], self.registering
        )

    def publish(self) -> None:
        """Make the last prepared snapshot visible to new statements."""
        self._sessions.publish()

    def release(self, pinned: Pinned | None) -> None:
        """Release the catalogs that no statement needs; None releases all but the newest."""
        self._sessions.release(pinned)

    @property
    def kept(self) -> tuple[CatalogVersion, ...]:
        """The catalog versions that statements can run over."""
        return self._sessions.kept

    async def load(
        self,
        table: TableName,
        spec: StoredTable,
        log: Log = (),
        pieces: Sequence[str] | None = None,
    ) -> int:
        """Load a version of a dataset, or some of its pieces, and return the row count.

        The version may not be in any catalog yet. It is then kept until a catalog names it or
        another version is loaded.

        Raises:
            OutOfMemoryQueryError: it does not fit; the previous version stays.
            ExecutionError: it cannot be read, or has a duplicate key.
        """
        version = self._sessions.version_of(table, spec)
        names = version.names if pieces is None else tuple(pieces)
        view = version.at(log)
        rows = await self._started_with_chunks(partial(view.load, names, self._chunks))
        # Not in a planning thread: it may take seconds. Until then earlier versions are searched.
        await asyncio.to_thread(self._searches.prepare, view, names)
        self._chunks.settle({each.key or spec.key for each in spec.chunks})
        self._sessions.keep_loaded(table, version)
        return rows

    async def put_back(self, table: TableName, spec: StoredTable, log: Log = ()) -> int:
        """Rewrite stored chunks of a version that are damaged but in memory here.

        Returns how many were rewritten. Raises CarawayError if the store cannot be written.
        """
        chunks = (*spec.chunks, *(entry.chunk for entry in log))
        return await self._chunks.put_back(MissingChunks(table, spec, chunks))

    @property
    def memory_used_bytes(self) -> int:
        """None outside of this process."""
        return 0

    @property
    def holds(self) -> tuple[TableName, ...]:
        """The accelerated datasets that have rows in memory."""
        versions = self.session.versions.by_name if self.session else {}
        return tuple(sorted(name for name, each in versions.items() if each.is_held))

    def let_go(self) -> None:
        """Release rows that other executors now read."""
        if self.session:
            self.session.let_go()

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Run a statement, over the catalog version that it names or the newest one."""
        write_marks.use(statement.mark)
        with logs.about(query_id, statement.trace_id):
            return await self._execute(statement)

    async def _execute(self, statement: Statement) -> BatchStream:
        if self._may_block and (rows := self.at_once(statement)):
            return rows
        session = await self._sessions.session_of(statement)
        bring = self._started_with_chunks
        if statement.index is not None and (rows := await self._indexed(session, statement)):
            return rows
        rows_stream = await look_up(session, statement, self._chunks, self._planning, bring)
        if rows_stream is not None:
            return rows_stream
        start = partial(session.start, statement)
        if statement.store is None:
            may_block = self._may_block and not session.crowd.is_waiting
            if may_block and session.is_instant(statement):
                with contextlib.suppress(ChunksAwayError):
                    return start()
            return await self._started(start, statement.in_background)
        # Open the store first: a writing statement must not start if there is no store.
        store = await self._stores.writer(statement.store.place)
        stream = await self._started(start, statement.in_background)
        return self._storing(stream, statement.store, store)

    def at_once(self, statement: Statement) -> RowsStream | None:
        """Answer a search if that takes no longer than to wake a thread, or return None.

        May be called from any thread, and does not wait.
        """
        if statement.index is None:
            return None
        session = self._sessions.at_hand(statement.catalog_version)
        if session is None:
            return None
        # What is missing, and what is wrong, is for those who may wait.
        with contextlib.suppress(Exception):
            if (found := self._searches.at_once(session, statement)) is not None:
                rows, is_steady = found
                return RowsStream(rows, reads_only_catalog=is_steady)
        return None

    async def _indexed(self, session: Session, statement: Statement) -> RowsStream | None:
        """Answer a statement by an index; None if there is none, and the statement may run.

        Raises:
            NotDistributableError: no index can answer for the share, or one is required.
        """
        order = statement.index
        assert order is not None
        try:
            answered = partial(self._searches.answered, session, statement)
            rows, is_steady = await self._started_with_chunks(answered)
        except NotDistributableError:
            if order.pieces is not None or order.is_required:
                raise
            return None
        return RowsStream(rows, reads_only_catalog=is_steady)

    async def ask(self, question: StatementQuestion[Answer]) -> Answer:
        """See `Executor.ask`."""
        if isinstance(question, CommitQuestion):
            return cast("Answer", await self._find_commit(question))
        if isinstance(question, SearchQuestion):
            session = await self._sessions.session_of(question.statement)
        else:
            session = self._sessions.current()
        return await self.in_planning_thread(partial(session.answer, question))

    async def _find_commit(self, question: CommitQuestion) -> int | None:
        from caraway_engine.remote import writing

        of = question.statement
        known = self._sessions.current().snapshot.tables.get(question.table)
        spec = of.defines.table if of.defines is not None else known
        count = await asyncio.to_thread(writing.find_commit, spec, of.mark)
        if count is None and of.defines is not None:
            raise ExecutionError("a table that is created without rows has no commit with a mark")
        return count

    async def run_task(self, task: Task, inputs: Sequence[TaskTable]) -> BatchStream:
        """Plan a fragment over the catalog that it was made for, and start it.

        Rows are returned as the engine makes them, unless they are stored.

        Raises:
            CatalogMovedError: that catalog is not available.
            QueryError: it cannot be planned or started.
        """
        with logs.about(task.query_id, task.trace_id):
            return await self._run(task, inputs)

    async def _run(self, task: Task, inputs: Sequence[TaskTable]) -> BatchStream:
        session = await self.over(task.catalog_version)
        start = partial(session.run_task, task, inputs)
        if task.store is None:
            return await self._started_over(start, task)
        store = await self._stores.writer(task.store.place)
        stream = await self._started_over(start, task)
        return self._storing(stream, task.store, store, task.schema)

    async def stored(self, rows: pa.RecordBatch, order: StoreOrder) -> BatchStream:
        """Store rows that already exist.

        Raises:
            ResultStoreError: the store cannot be opened.
        """
        store = await self._stores.writer(order.place)
        return self._storing(RowsStream(rows, reads_only_catalog=False), order, store)

    async def in_planning_thread(self, work: Callable[[], _Result]) -> _Result:
        """Run blocking work in a planning thread."""
        run = contextvars.copy_context().run
        return await asyncio.get_running_loop().run_in_executor(self._planning, run, work)

    async def probe(self) -> None:
        """Return once a thread that plans was free, and one that computes rows."""
        await self.in_planning_thread(lambda: None)
        await self._probe.run_statement()

    def _storing(
        self,
        rows: BatchStream,
        order: StoreOrder,
        store: ChunkWriter,
        schema: pa.Schema | None = None,
    ) -> StoringStream:
        keep = partial(self._chunks.keep, order.key) if order.is_kept else None
        return StoringStream(rows, order, store, schema, keep, self._name)

    async def over(self, version: CatalogVersion) -> Session:
        """Return the session of a catalog version.

        Raises:
            CatalogMovedError: that catalog is not available.
        """
        return await self._sessions.over(version)

    async def _started_over(self, start: Callable[[], EngineStream], task: Task) -> EngineStream:
        stream = await self._started(start, task.in_background)
        self._sessions.loosen(task.catalog_version)
        return stream

    async def _started(
        self, start: Callable[[], EngineStream], in_background: bool
    ) -> EngineStream:
        loop = asyncio.get_running_loop()
        stream = await self._started_with_chunks(start)
        self._check_place(stream)
        if stream.is_product:
            await self._products.enter(in_background=in_background)
            stream.on_end = partial(self._leave_product, loop, in_background)
        return stream

    async def _started_with_chunks(self, start: Callable[[], _Result]) -> _Result:
        """Run work that may need chunks that are not in memory, and load them."""
        chunks: list[Chunk] = []
        while True:
            try:
                return await self.in_planning_thread(start)
            except ChunksAwayError as exc:
                chunks += await self._chunks.bring(exc.wanted)

    def _check_place(self, stream: EngineStream) -> None:
        """Refuse a statement that must run in another process, before it starts.

        Raises:
            RunsApartError, RunsInMainError: it must run in that process.
        """
        runs_apart = stream.is_product or stream.is_waiting
        if self._role == "alone" or (stream.written is None and not runs_apart):
            return
        if stream.written is not None and self.is_in_memory(stream.written):
            if self._role == "apart":
                raise RunsInMainError
        elif runs_apart and self._role == "main":
            raise RunsApartError

    def is_in_memory(self, table: TableName) -> bool:
        """Return whether the rows of a table exist only in memory."""
        tables = self.session.snapshot.tables if self.session is not None else {}
        return table in tables and tables[table].first_rows is not None

    async def rows_of(self, table: TableName) -> pa.Table:
        """Return all rows of a table in memory."""
        stream = await self.execute(new_query_id(), Statement(f"SELECT * FROM {quoted(table)}", {}))
        batches = [batch async for batch in stream]
        return pa.Table.from_batches(batches, stream.schema)

    def _leave_product(
        self, loop: asyncio.AbstractEventLoop, in_background: bool, is_whole: bool
    ) -> None:
        leave = partial(self._products.leave, is_whole, in_background=in_background)
        # Any thread may drop a stream, even after the loop was closed.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(leave)

    def close(self) -> None:
        """Cancel planning, and release all sessions."""
        self._products.close()
        self._searches.close()
        self._planning.shutdown(wait=False, cancel_futures=True)
        self._sessions.clear()
