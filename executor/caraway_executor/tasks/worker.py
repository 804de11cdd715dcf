"""The work of a cluster executor, independent of the transport."""

import tempfile
import time
import uuid
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from caraway_core.changes import Log
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import (
    CarawayError,
    ExecutionError,
    ShuttingDownError,
)
from caraway_core.ids import QueryId, TableName, new_query_id
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import (
    AnswerPage,
    Description,
    OwnFile,
    Pinned,
    TableCatalog,
    Task,
    TaskReport,
    TaskTable,
)
from caraway_core.protocols.hosting import CopyOrder, CopyStatus
from caraway_core.protocols.offers import FlightPlace, Offer, OfferOutcome
from caraway_core.settings import Address
from caraway_core.statements import Statement
from caraway_core.tables import StoredTable
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.answers.collecting import PlainStream, collect
from caraway_executor.answers.cursors import Cursors
from caraway_executor.answers.kept_tables import KeptTables
from caraway_executor.answers.offers import OfferedRows, Offers, TakenStream
from caraway_executor.answers.profiling import profiled_stream
from caraway_executor.models.model_copies import ModelCopies
from caraway_executor.resources.memory_in_use import MemoryInUse, OwnMemory
from caraway_executor.resources.room import TaskMemory
from caraway_executor.tasks.catalogs import Catalogs
from caraway_executor.tasks.host_files import HostFiles
from caraway_executor.tasks.places import Places
from caraway_executor.tasks.relieving import Relieving
from caraway_executor.tasks.running import RunningCalls

_Result = TypeVar("_Result")


class Worker:
    """Holds the catalogs of its schedulers, and runs statements and tasks over them.

    Call it concurrently from one event loop. `install` and `keep` block and must run in a thread.
    """

    def __init__(
        self,
        identity: Description,
        settings: EngineSettings,
        clock: SecondsClock = time.monotonic,
        files: HostFiles | None = None,
        models: Path | None = None,
        *,
        is_relieved: bool = False,
    ) -> None:
        """Take the folder for the files of models; without one, it is temporary.

        One that `is_relieved` starts engine processes for when its own threads take no work.
        """
        self._identity = replace(identity, incarnation=uuid.uuid4().hex)
        self._files = files or HostFiles(None, clock)
        self._room = TaskMemory(settings.memory_limit_bytes)
        self._memory = MemoryInUse(self._room, OwnMemory())
        self._catalogs = Catalogs(settings, clock, self._files, self._room, identity.executor_id)
        self._places = Places(max(1, settings.target_partitions))
        self._relieving = Relieving(
            settings, self._catalogs, self._places, clock, has_processes=is_relieved
        )
        self._cursors = Cursors(clock)
        self.offers = Offers(self._room)
        self.kept = KeptTables()
        folder = models or Path(tempfile.gettempdir()) / "caraway-models"
        self.models = ModelCopies(identity.cores, identity.gpus, self._room, folder, clock)
        self._calls = RunningCalls()
        self._is_draining = False
        self.stopped = 0
        """The number of times that work was cancelled. Some of it may still be running."""

    def serves_at(self, place: FlightPlace) -> None:
        """Note where clients fetch parts of answers; before any call."""
        self._identity = replace(self._identity, flight=place)

    def is_called_at(self, place: Address) -> None:
        """Note where schedulers make short calls; before any call."""
        self._identity = replace(self._identity, channels=place, carries_tasks=True)

    async def describe(self, origin: str = "", pinned: Pinned | None = None) -> Description:
        """Return the heartbeat; keep the catalog versions of this origin that are pinned."""
        await self._cursors.close_forgotten()
        self.offers.end_stalled()
        await self.models.tend()
        self._relieving.tend()
        self._catalogs.touch(origin, pinned)
        self._catalogs.forget_unused(self._cursors.origins | self.offers.origins)
        active_tasks = len(self._calls) + len(self._cursors) + len(self.offers) + self.models.active
        finished, failed = self._calls.finished, self._calls.failed
        return replace(
            self._identity,
            is_draining=self._is_draining,
            active_tasks=active_tasks,
            finished_tasks=finished,
            failed_tasks=failed,
            memory_used_bytes=await self._memory.measure(active_tasks, finished + failed),
            catalogs=self._catalogs.versions,
            holds=self._catalogs.holds,
            models=self.models.keys,
        )

    async def missing(self, files: Sequence[OwnFile]) -> tuple[OwnFile, ...]:
        """Return the files that a catalog over these needs and that are not here."""
        return self._files.missing(files)

    def keep(self, file: OwnFile, content: pa.Buffer) -> None:
        """Keep a copy of a file. Blocks.

        Raises:
            ExecutionError: it cannot be kept.
        """
        self._files.keep(file, content)

    def install(self, catalog: TableCatalog) -> Mapping[TableName, str]:
        """Install a catalog, in addition to those of other schedulers. Blocks."""
        return self._catalogs.install(catalog)

    async def load(
        self,
        origin: str,
        table: TableName,
        spec: StoredTable,
        pieces: Sequence[str] | None = None,
        log: Log = (),
    ) -> int:
        """Load a version of an accelerated dataset, or some of its pieces; return the row count.

        It is kept for the catalog of the origin that will name it.

        Raises:
            ShuttingDownError: the executor is draining, or has no catalog of the origin.
            QueryError: it does not fit, or cannot be read; the previous version stays.
        """
        loading = self._load(origin, table, spec, pieces, log)
        return await self._work(new_query_id(), origin, loading)

    async def put_back(
        self, origin: str, table: TableName, spec: StoredTable, log: Log = ()
    ) -> int:
        """Rewrite chunks that are damaged in their store; see `LocalExecutor.put_back`."""
        putting = self._catalogs.executor(origin).put_back(table, spec, log)
        return await self._work(new_query_id(), origin, putting)

    async def probe(self) -> None:
        """Run a minimal statement over any installed catalog. Raises the same as `open`."""
        origin = next(iter(self._catalogs.versions), "")
        await self.open(new_query_id(), Statement("SELECT 1 AS ok", {}), origin)

    async def open(
        self, query_id: QueryId, statement: Statement, origin: str, call: str = ""
    ) -> AnswerPage:
        """Run a whole statement and return its first page; `call` names it for cancellation.

        Raises:
            QueryError: it cannot be planned, or failed before the page was full.
            ShuttingDownError: the executor is draining, or does not have the catalog.
        """
        call = call or query_id
        return await self._work(call, origin, self._open(call, query_id, statement, origin))

    def open_at_once(self, statement: Statement, origin: str) -> AnswerPage | None:
        """Answer like `open` if that takes no longer than to wake a thread, or return None."""
        if statement.index is None or self._is_draining:
            return None
        try:
            stream = self._catalogs.executor(origin).at_once(statement)
        except ShuttingDownError:
            return None
        if stream is None:
            return None
        self._catalogs.touch(origin)
        self._calls.finished += 1
        batches = () if stream.traits.whole is None else (stream.traits.whole,)
        is_steady = stream.reads_only_catalog
        return AnswerPage("", batches, True, stream.schema, reads_only_catalog=is_steady)

    async def open_task(
        self, task: Task, inputs: Sequence[TaskTable], call: str = ""
    ) -> AnswerPage:
        """Run a task and return the first page of its rows. Raises the same as `open`."""
        call = call or task.query_id
        return await self._work(call, task.catalog, self._open_task(call, task, inputs))

    async def run_task(
        self, task: Task, inputs: Sequence[TaskTable], call: str = ""
    ) -> tuple[TaskReport, tuple[pa.Table, ...]]:
        """Run a task and return its rows: one table, or one for each hash partition.

        Raises the same as `open`.
        """
        return await self._work(call or task.query_id, task.catalog, self._run(task, inputs))

    async def offer(
        self, task: Task, inputs: Sequence[TaskTable], offer: Offer, call: str = ""
    ) -> None:
        """Keep the rows of a task for a client; see `Offers`. Raises the same as `open`."""
        call = call or task.query_id
        await self._work(call, task.catalog, self._offer(call, task, inputs, offer))

    async def attend(self, offer_id: str) -> OfferOutcome:
        """Wait until an offer was read to its end; see `Offers.attend`."""
        return await self.offers.attend(offer_id)

    async def withdraw(self, offer_id: str, reason: CarawayError) -> None:
        """End an offer; whoever reads it is told the reason."""
        await self.offers.end(offer_id, reason)

    async def read_offer(self, offer_id: str, call: str) -> AnswerPage:
        """Read an offer page by page, for a scheduler that has checked who asks for it."""
        rows = self.offers.take_offer(offer_id, None)
        return await self._first_page(call, rows.origin, TakenStream(self.offers, rows))

    async def host(self, order: CopyOrder) -> CopyStatus:
        """Host a copy of a model; see `ModelCopies.order`."""
        return self.models.order(order, is_draining=self._is_draining)

    async def dismiss(self, holder: str, key: str) -> None:
        """Host a copy no more for a scheduler."""
        self.models.dismiss(holder, key)

    async def next(self, cursor: str) -> AnswerPage:
        """Return the next page of an open result.

        Raises:
            QueryError: the statement failed or was cancelled.
            ShuttingDownError: there is no open result of this name.
        """
        return await self._cursors.next(cursor)

    async def close(self, cursor: str) -> None:
        """Cancel an open result."""
        self.stopped += 1
        await self._cursors.close(cursor)

    async def cancel(self, call: str) -> None:
        """Cancel the running work and open results of a call, but not other calls of the query."""
        self.stopped += 1
        self._calls.cancel(call)
        await self._cursors.close_call(call)
        await self.offers.end_call(call)
        self.kept.forget(call)

    def drain(self) -> None:
        """Take no new work. Running work continues, and open results can be read to the end."""
        self._is_draining = True

    @property
    def embedded(self) -> Mapping[str, int]:
        """The texts that each embedding model was called with."""
        return self._catalogs.embedded

    async def aclose(self) -> None:
        """Cancel all work, and release the catalogs."""
        self._calls.cancel_all()
        # Each of them, also after another one failed or if this is cancelled.
        ends = ShuttingDownError("the executor ends; run the query again")
        async with AsyncExitStack() as closing:
            closing.callback(self._catalogs.close)
            closing.callback(self._relieving.close)
            closing.push_async_callback(self.offers.aclose, ends)
            closing.push_async_callback(self.models.aclose)
            closing.push_async_callback(self._cursors.aclose)

    async def _load(
        self,
        origin: str,
        table: TableName,
        spec: StoredTable,
        pieces: Sequence[str] | None,
        log: Log,
    ) -> int:
        return await self._catalogs.executor(origin).load(table, spec, log, pieces)

    async def _open(
        self, call: str, query_id: QueryId, statement: Statement, origin: str
    ) -> AnswerPage:
        stream = await self._relieving.executor(origin).execute(query_id, statement)
        return await self._first_page(call, origin, stream)

    async def _open_task(self, call: str, task: Task, inputs: Sequence[TaskTable]) -> AnswerPage:
        asked_s = time.monotonic()
        async with self._place(task, inputs) as is_here:
            began_s = time.monotonic()
            stream = await self._relieving.run_task(task, inputs, is_here=is_here)
            if task.store is None:
                profiled = profiled_stream(task, stream, asked_s, began_s)
                stream = PlainStream(profiled or stream, task.schema)
                stream.traits.profile = profiled.profile if profiled is not None else None
            return await self._first_page(call, task.catalog, stream)

    async def _offer(
        self, call: str, task: Task, inputs: Sequence[TaskTable], offer: Offer
    ) -> None:
        executor = self._relieving.executor(task.catalog)
        rows = OfferedRows(
            offer,
            call,
            task.catalog,
            task.schema,
            partial(executor.run_task, task, inputs),
            partial(self._places.place, in_background=task.in_background),
        )
        held_bytes = sum(table.nbytes for each in inputs for table in each.tables)
        self.offers.enter(rows, held_bytes)
        try:
            if offer.is_eager:
                await rows.start_task()
        except BaseException as exc:
            error = exc if isinstance(exc, CarawayError) else ExecutionError("the task failed")
            await self.offers.end(offer.offer_id, error)
            raise

    async def _run(
        self, task: Task, inputs: Sequence[TaskTable]
    ) -> tuple[TaskReport, tuple[pa.Table, ...]]:
        asked_s = time.monotonic()
        async with self._place(task, inputs) as is_here:
            began_s = time.monotonic()
            stream = await self._relieving.run_task(task, inputs, is_here=is_here)
            profiled = profiled_stream(task, stream, asked_s, began_s)
            try:
                with self._room.place() as place:
                    tables = await collect(profiled or stream, task.schema, task.split, place)
            finally:
                await stream.aclose()
        sizes = tuple((table.num_rows, table.nbytes) for table in tables)
        elapsed_ms = (time.monotonic() - began_s) * 1000
        profile = profiled.profile() if profiled is not None else None
        return TaskReport(sizes, elapsed_ms, profile), tables

    def _place(self, task: Task, inputs: Sequence[TaskTable]) -> AbstractAsyncContextManager[bool]:
        may_leave = self._relieving.may_leave(task, inputs)
        return self._places.place(in_background=task.in_background, may_leave=may_leave)

    async def _first_page(self, call: str, origin: str, stream: BatchStream) -> AnswerPage:
        page = await self._cursors.open(call, origin, stream)
        return replace(
            page,
            schema=stream.schema,
            reads_only_catalog=stream.reads_only_catalog,
            written=stream.written,
        )

    async def _work(
        self, call: str, origin: str, work: Coroutine[object, object, _Result]
    ) -> _Result:
        """Run work over a catalog; see `RunningCalls.run`."""
        if self._is_draining:
            work.close()
            raise ShuttingDownError("the executor is draining and takes no new work")
        with self._catalogs.at_work(origin):
            return await self._calls.run(call, work)
