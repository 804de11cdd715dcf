"""The executor that runs statements in its own process."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from threading import Lock
from typing import Literal, TypeVar
from weakref import WeakValueDictionary

import pyarrow as pa

from caraway_core.changes import Log
from caraway_core.errors import CatalogMovedError, NotDistributableError, ShuttingDownError
from caraway_core.ids import CatalogVersion, QueryId, TableName, new_query_id
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Pinned, Task, TaskTable
from caraway_core.protocols.results import ResultStore
from caraway_core.protocols.storing import StoreOrder
from caraway_core.statement_searches import StatementSearch
from caraway_core.statements import CatalogSnapshot, Statement, TableWrite, ViewFacts
from caraway_core.tables import StoredTable
from caraway_engine.execution import processes
from caraway_engine.execution.contexts import Pools, quoted
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.execution.streams import EngineStream
from caraway_engine.rows.held import Chunk
from caraway_engine.sessions.sessions import Session
from caraway_engine.stored import ChunksAwayError, MissingChunks, StoredVersion
from caraway_executor.chunks import KeptChunks
from caraway_executor.engines.causes import RunsApartError, RunsInMainError
from caraway_executor.indexes.running import IndexedSearches
from caraway_executor.kept_sessions import KeptCatalog
from caraway_executor.looking_up import RowsStream, look_up
from caraway_executor.products import Products
from caraway_executor.room import TaskMemory
from caraway_executor.stores import Stores
from caraway_executor.storing import StoringStream

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
    ) -> None:
        """Take what executors of one process share; `name` is the executor's name in a cluster.

        In the role "main", it refuses products and statements whose engine threads may wait for a
        database. An executor in the role "apart" runs these, but does not write to tables in
        memory.
        """
        processes.prepare()
        self._role = role
        self.registering: Callable[[TableName | None], None] = lambda _view: None
        """Called with each view before it is planned, and with None afterwards."""
        self._name = name
        self._settings = settings
        self._pools = Pools(settings)
        self._stores = stores or Stores()
        self._chunks = chunks or KeptChunks(
            self._stores, TaskMemory(settings.memory_limit_bytes), settings.chunks_directory
        )
        self._searches = IndexedSearches(self._chunks, settings)
        self._session: Session | None = None
        self._prepared: Session | None = None
        self._kept: Mapping[CatalogVersion, KeptCatalog] = {}
        self._coming: dict[TableName, StoredVersion] = {}
        # Shares of a version that are loaded concurrently must belong to one object.
        self._loading: WeakValueDictionary[tuple[TableName, str], StoredVersion] = (
            WeakValueDictionary()
        )
        # Catalogs are published by threads, while the loop loads and forgets versions.
        self._moving = Lock()
        self._products = Products(max(1, settings.target_partitions - 1))
        # Planning lists files and may block on a remote store. It has its own threads, so that slow
        # planning never delays the encoding of results.
        self._planning = planning or ThreadPoolExecutor(
            _PLANNING_THREADS, thread_name_prefix="planning"
        )

    @property
    def session(self) -> Session | None:
        """The session that new statements use."""
        return self._session

    @property
    def prepared_views(self) -> Mapping[TableName, ViewFacts]:
        """The facts of the views in the catalog that was prepared but not yet published."""
        return {} if self._prepared is None else self._prepared.views

    @property
    def views(self) -> Mapping[TableName, ViewFacts]:
        """The facts of the views in the catalog that new statements see."""
        return {} if self._session is None else self._session.views

    def install(
        self, snapshot: CatalogSnapshot, others: Sequence["LocalExecutor"] = ()
    ) -> Mapping[TableName, str]:
        """Install a snapshot, and reuse what is unchanged from the last one or from `others`."""
        failed = self.prepare(snapshot, others)
        self.publish()
        self.release(None)
        return failed

    def prepare(
        self, snapshot: CatalogSnapshot, others: Sequence["LocalExecutor"] = ()
    ) -> Mapping[TableName, str]:
        """Register a snapshot; statements see it after `publish`."""
        session = Session(self._settings, snapshot, self._chunks, self._pools)
        coming = [*chain.from_iterable(each._loaded() for each in (self, *others))]
        previous = (self._session, *(each.session for each in others))
        failed = session.install(*previous, versions=coming, note=self.registering)
        self._prepared = session
        return failed

    def publish(self) -> None:
        """Make the last prepared snapshot visible to new statements."""
        session, self._prepared = self._prepared, None
        if session is None:
            return
        here = list(session.versions)
        with self._moving:
            self._session = session
            self._coming = {name: each for name, each in self._coming.items() if each not in here}
            for each in self._kept.values():
                each.loosen(session)
            self._kept = {**self._kept, session.snapshot.version: KeptCatalog(session)}

    def release(self, pinned: Pinned | None) -> None:
        """Release the catalogs that no statement needs; None releases all but the newest."""
        with self._moving:
            newest = None if self._session is None else self._session.snapshot.version
            self._kept = {
                version: kept
                for version, kept in self._kept.items()
                if version == newest or (pinned is not None and pinned.needs(version))
            }

    @property
    def kept(self) -> tuple[CatalogVersion, ...]:
        """The catalog versions that statements can run over."""
        return tuple(self._kept)

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
        version = self._version(table, spec)
        names = version.names if pieces is None else tuple(pieces)
        view = version.at(log)
        rows = await self._started_with_chunks(partial(view.load, names, self._chunks))
        # Not in a planning thread: it may take seconds. Until then earlier versions are searched.
        await asyncio.to_thread(self._searches.prepare, view, names)
        self._chunks.settle({each.key or spec.key for each in spec.chunks})
        with self._moving:
            if self._session is None or version not in list(self._session.versions):
                self._coming[table] = version
        return rows

    async def put_back(self, table: TableName, spec: StoredTable, log: Log = ()) -> int:
        """Rewrite stored chunks of a version that are damaged but in memory here.

        Returns how many were rewritten. Raises CarawayError if the store cannot be written.
        """
        chunks = (*spec.chunks, *(entry.chunk for entry in log))
        return await self._chunks.put_back(MissingChunks(table, spec, chunks))

    def _loaded(self) -> list[StoredVersion]:
        with self._moving:
            return list(self._coming.values())

    @property
    def memory_used_bytes(self) -> int:
        """None outside of this process."""
        return 0

    @property
    def holds(self) -> tuple[TableName, ...]:
        """The accelerated datasets that have rows in memory."""
        versions = self._session.versions.by_name if self._session else {}
        return tuple(sorted(name for name, each in versions.items() if each.is_held))

    def let_go(self) -> None:
        """Release rows that other executors now read."""
        for version in self._session.versions if self._session else ():
            version.let_go()

    def _version(self, table: TableName, spec: StoredTable) -> StoredVersion:
        current = self._session.versions.by_name.get(table) if self._session else None
        for known in (current, self._coming.get(table), self._loading.get((table, spec.key))):
            if known is not None and known.spec == spec:
                return known
        made = StoredVersion(table, spec, self._settings.target_partitions)
        self._loading[table, spec.key] = made
        return made

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Run a statement, over the catalog version that it names or the newest one."""
        if statement.catalog_version is not None:
            session = await self.over(statement.catalog_version)
        elif self._session is not None:
            session = self._session
        else:
            raise ShuttingDownError("the executor has no catalog yet")
        bring = self._started_with_chunks
        if statement.index is not None and (rows := await self._indexed(session, statement)):
            return rows
        found = await look_up(session, statement, self._chunks, self._planning, bring)
        if found is not None:
            return found
        start = partial(session.start, statement)
        if statement.store is None:
            return await self._started(start, statement.in_background)
        # Open the store first: a writing statement must not start if there is no store.
        store = await self._stores.at(statement.store.place)
        stream = await self._started(start, statement.in_background)
        return self._storing(stream, statement.store, store)

    async def _indexed(self, session: Session, statement: Statement) -> RowsStream | None:
        """Answer a statement by an index; None if there is none, and the statement may run.

        Raises:
            NotDistributableError: no index can answer for the share, or one is required.
        """
        order = statement.index
        assert order is not None
        try:
            answered = partial(self._searches.answered, session, statement)
            rows = await self._started_with_chunks(answered)
        except NotDistributableError:
            if order.pieces is not None or order.is_required:
                raise
            return None
        return RowsStream(rows, reads_only_catalog=not statement.logs)

    async def write_of(self, statement: Statement) -> TableWrite | None:
        """Return what a statement writes, or None. Checks no permissions."""
        session = self._session
        if session is None:
            raise ShuttingDownError("the executor has no catalog yet")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._planning, session.write_of, statement)

    async def parameters_of(self, statement: Statement) -> Mapping[str, pa.DataType]:
        """Return the types of a statement's parameters; see `Dispatch.parameters_of`."""
        session = self._session
        if session is None:
            raise ShuttingDownError("the executor has no catalog yet")
        return await self.in_planning_thread(partial(session.parameters, statement))

    async def searches_of(self, statement: Statement) -> tuple[StatementSearch, ...]:
        """Return the searches whose rows a statement reads; see `Executor.searches_of`."""
        if statement.catalog_version is not None:
            session = await self.over(statement.catalog_version)
        elif self._session is not None:
            session = self._session
        else:
            raise ShuttingDownError("the executor has no catalog yet")
        return await self.in_planning_thread(partial(session.searches, statement))

    async def run(self, task: Task, inputs: Sequence[TaskTable]) -> BatchStream:
        """Plan a fragment over the catalog that it was made for, and start it.

        Rows are returned as the engine makes them, unless they are stored.

        Raises:
            CatalogMovedError: that catalog is not available.
            QueryError: it cannot be planned or started.
        """
        session = await self.over(task.catalog_version)
        start = partial(session.run, task, inputs)
        if task.store is None:
            return await self._started_over(start, task)
        store = await self._stores.at(task.store.place)
        stream = await self._started_over(start, task)
        return self._storing(stream, task.store, store, task.schema)

    async def stored(self, rows: pa.RecordBatch, order: StoreOrder) -> BatchStream:
        """Store rows that already exist.

        Raises:
            ResultStoreError: the store cannot be opened.
        """
        store = await self._stores.at(order.place)
        return self._storing(RowsStream(rows, reads_only_catalog=False), order, store)

    async def in_planning_thread(self, work: Callable[[], _Result]) -> _Result:
        """Run blocking work in a planning thread."""
        return await asyncio.get_running_loop().run_in_executor(self._planning, work)

    def _storing(
        self,
        rows: BatchStream,
        order: StoreOrder,
        store: ResultStore,
        schema: pa.Schema | None = None,
    ) -> StoringStream:
        keep = partial(self._chunks.keep, order.key) if order.is_kept else None
        return StoringStream(rows, order, store, schema, keep, self._name)

    async def over(self, version: CatalogVersion) -> Session:
        """Return the session of a catalog version.

        Raises:
            CatalogMovedError: that catalog is not available.
        """
        kept = self._kept.get(version)
        if kept is None:
            raise CatalogMovedError(version)
        session = kept.session()
        if session is None:
            session = await asyncio.to_thread(self._reopened, kept)
        return session

    async def _started_over(self, start: Callable[[], EngineStream], task: Task) -> EngineStream:
        stream = await self._started(start, task.in_background)
        if (kept := self._kept.get(task.catalog_version)) is not None:
            kept.loosen(self._session)
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
        loop = asyncio.get_running_loop()
        held: list[Chunk] = []
        while True:
            try:
                return await loop.run_in_executor(self._planning, start)
            except ChunksAwayError as exc:
                held += await self._chunks.bring(exc.wanted)

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
        tables = self._session.snapshot.tables if self._session is not None else {}
        return table in tables and tables[table].first_rows is not None

    async def rows_of(self, table: TableName) -> pa.Table:
        """Return all rows of a table in memory."""
        stream = await self.execute(new_query_id(), Statement(f"SELECT * FROM {quoted(table)}", {}))
        batches = [batch async for batch in stream]
        return pa.Table.from_batches(batches, stream.schema)

    def _reopened(self, kept: KeptCatalog) -> Session:
        """Rebuild the session of an earlier catalog; it lives as long as its readers."""
        session = Session(self._settings, kept.snapshot, self._chunks, self._pools)
        session.install(self._session)
        kept.reopened(session)
        return session

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
        self._session = None
        self._kept = {}
        self._coming = {}
