"""Dispatches statements to a cluster: to the scheduler, to one executor or in stages to all."""

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

from caraway_core.changes import Log
from caraway_core.concurrency.tasks import Tasks
from caraway_core.errors import (
    AnswerCutError,
    CatalogMovedError,
    ExecutorLostError,
    InvalidQueryError,
    NotDistributableError,
    OutOfMemoryQueryError,
    PlanLostError,
)
from caraway_core.ids import CatalogVersion, ExecutorId, QueryId, TableName
from caraway_core.protocols.dispatch import (
    BatchStream,
    ExecutorStatus,
    StageProgress,
    StatementProgress,
)
from caraway_core.protocols.fleet import Fleet, OwnFile, Pinned, TableCatalog
from caraway_core.statements import (
    ActiveStatement,
    CatalogSnapshot,
    ReadPoint,
    Statement,
    ViewFacts,
)
from caraway_core.statements.questions import Answer, StatementQuestion
from caraway_core.tables import StoredTable, TableSpec
from caraway_engine.routing import Explained, Here, LookedUp, Staged, Whole
from caraway_engine.stages import Policy
from caraway_scheduler.dispatch.explanations.diagnosing import Diagnoses
from caraway_scheduler.dispatch.fleets.own_files import OwnFiles
from caraway_scheduler.dispatch.indexes.indexed import IndexedRunner
from caraway_scheduler.dispatch.loading.loading import Loader
from caraway_scheduler.dispatch.loading.warming import Warmer
from caraway_scheduler.dispatch.planning import following
from caraway_scheduler.dispatch.planning.asking import PlannerClient, RunDecision
from caraway_scheduler.dispatch.planning.following import KnownLogs
from caraway_scheduler.dispatch.planning.local_engine import LocalEngine
from caraway_scheduler.dispatch.single.lost_writes import LostWrites
from caraway_scheduler.dispatch.single.memory_owner import MemoryOwner
from caraway_scheduler.dispatch.single.whole import LookupRunner, WholeRunner
from caraway_scheduler.dispatch.stages.staging import StagedRunner
from caraway_scheduler.dispatch.tasks.quarantine import Quarantine
from caraway_scheduler.dispatch.tasks.reports import FinishedTask, WorkReports
from caraway_scheduler.dispatch.tasks.running import ATTEMPTS
from caraway_scheduler.dispatch.tasks.tallies import DispatchTallies
from caraway_scheduler.dispatch.wrappers.pins import PinnedStream, Pins
from caraway_scheduler.membership import Membership, RollListener

logger = logging.getLogger(__name__)
_MOVED_S = 2.0
OnFailed = Callable[[CatalogVersion, Mapping[TableName, str]], None]


class ClusterDispatch(RollListener):
    """Chooses where each statement runs.

    Statements over the scheduler's own tables, or over no table, run in the scheduler. Statements
    that are small, write, or cannot be distributed safely run whole on one executor. All others run
    in stages.
    """

    def __init__(
        self,
        fleet: Fleet,
        membership: Membership,
        local: LocalEngine,
        origin: str,
        owner: MemoryOwner,
        policy: Policy,
        own_files: OwnFiles,
    ) -> None:
        self._on_ran: Callable[[FinishedTask], None] = lambda _ran: None
        self._on_failed: OnFailed = lambda _version, _failures: None
        self._fleet = fleet
        self._membership = membership
        self._local = local
        self._origin = origin
        self.tallies = DispatchTallies()
        self._own_files = own_files
        self._logs = KnownLogs()
        self._pins = Pins()
        self._snapshot: CatalogSnapshot | None = None
        self._held: dict[int, CatalogSnapshot] = {}
        """The catalogs of the points at which several statements read."""
        self._numbers = itertools.count()
        self._views: Mapping[TableName, ViewFacts] = {}
        self._released: Pinned | None = None
        self._published = asyncio.Event()
        self._tasks = Tasks()
        self._asking = PlannerClient(local, membership, policy)
        self.quarantine = Quarantine(membership.ends)
        self._loader = Loader(fleet, membership, origin, policy)
        reports = WorkReports(
            self.tallies, lambda ran: self._on_ran(ran), membership.lost, self.quarantine.lost
        )
        self._whole = WholeRunner(fleet, membership, origin, reports, owner, LostWrites(local.ask))
        self._staged = StagedRunner(
            fleet, membership, local.run_task, origin, reports, self._asking
        )
        self._diagnoses = Diagnoses(local, self._whole, self._staged, self._asking)
        self._lookups = LookupRunner(membership, self._whole)
        self._indexed = IndexedRunner(membership, self._whole, policy)
        self.warmer = Warmer(self._loader, self._indexed.building, membership, self._accelerated)

    def record_work(self, record: Callable[[FinishedTask], None]) -> None:
        """Call `record` for each piece of work that an executor completed."""
        self._on_ran = record

    def report_failures(self, report: OnFailed) -> None:
        """Call `report` with tables that failed on an executor after their catalog was served."""
        self._on_failed = report

    def executors_changed(self) -> None:
        self.quarantine.look()

    def tables_failed(self, version: CatalogVersion, failures: Mapping[TableName, str]) -> None:
        self._on_failed(version, failures)

    async def prepare(self, executor_id: ExecutorId) -> None:
        await self.warmer.prepare(executor_id)

    async def install(self, snapshot: CatalogSnapshot) -> Mapping[TableName, str]:
        """Install the catalog on every executor, then plan over it.

        Definitions that fail here fail everywhere, such as a view over a missing table. Such
        failures do not stop executors from becoming ready.
        """
        apart, files = await asyncio.to_thread(self._found, snapshot.tables)
        snapshot = replace(snapshot, undivided=apart)
        prepared = await self._local.prepare(snapshot)
        failed = dict(prepared.failed)
        catalog = TableCatalog(
            snapshot.version,
            self._origin,
            snapshot.tables,
            files,
            self.pinned(),
            snapshot.embedding.specs,
        )
        failed.update(await self._membership.install(catalog, frozenset(failed)))
        await self._local.publish()
        # Until now new statements used the previous version, which is kept for them.
        self._snapshot, self._views = snapshot, prepared.views
        self._published.set()
        return failed

    def _found(
        self, tables: Mapping[TableName, TableSpec]
    ) -> tuple[frozenset[TableName], tuple[OwnFile, ...]]:
        """Find the tables and files in this host's cache folder; blocks while hashing."""
        return self._own_files.tables(tables), self._own_files.find(tables)

    def views(self) -> Mapping[TableName, ViewFacts]:
        """Return the facts of all views."""
        return self._views

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Start a statement; retry while the catalog changes or its planner is lost."""
        for attempt in range(1, ATTEMPTS + 1):
            snapshot = self._snapshot_of(statement)
            if snapshot is None:
                return await self._local.execute(query_id, statement)
            self._published.clear()
            # Read together with the snapshot: a log belongs to the version in that snapshot.
            stated = self._logs.given_to(statement)
            pin = self._pins.pin_catalogs(stated, snapshot)
            try:
                stream = await self._execute(query_id, stated, snapshot)
                return PinnedStream(stream, pin)
            except (CatalogMovedError, PlanLostError) as exc:
                pin.release()
                if attempt == ATTEMPTS or statement.catalog_version is not None:
                    raise
                if isinstance(exc, CatalogMovedError):
                    await self._wait_published()
            except BaseException:
                pin.release()
                raise
        raise AssertionError("unreachable")

    async def read_offer(self, executor_id: ExecutorId, offer_id: str) -> BatchStream:
        """Read the rows that an executor offers."""
        try:
            return await self._fleet.read_offer(executor_id, offer_id)
        except ExecutorLostError as exc:
            raise AnswerCutError(f"{exc.message}; run the query again") from exc

    async def ask(self, question: StatementQuestion[Answer]) -> Answer:
        """See `Dispatch.ask`."""
        return await self._local.ask(question)

    @contextmanager
    def reading(self) -> Iterator[ReadPoint]:
        """Keep the newest catalog and logs, so that several statements read the same rows."""
        snapshot = self._snapshot
        if snapshot is None:
            yield ReadPoint()
            return
        logs = self._logs.given_to(Statement("", {})).logs
        pin = self._pins.pin_catalogs(Statement("", {}, logs=logs), snapshot)
        number = next(self._numbers)
        self._held[number] = snapshot
        try:
            yield ReadPoint(snapshot.version, logs)
        finally:
            del self._held[number]
            pin.release()

    def _snapshot_of(self, statement: Statement) -> CatalogSnapshot | None:
        """Return the catalog that a statement names, or the newest.

        Raises:
            CatalogMovedError: the one that it names is not kept.
        """
        version = statement.catalog_version
        if version is None:
            return self._snapshot
        for snapshot in (self._snapshot, *self._held.values()):
            if snapshot is not None and snapshot.version == version:
                return snapshot
        raise CatalogMovedError(version)

    async def _wait_published(self) -> None:
        """Wait briefly for a newer catalog after an executor reported that it lacks this one."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_MOVED_S):
                await self._published.wait()

    def pinned(self) -> Pinned | None:
        """Return the catalog versions in use, and release all others in the local engine."""
        if self._snapshot is None:
            return None
        pinned = self._pins.pinned(self._snapshot.version)
        if pinned != self._released:
            self._released = pinned
            self._tasks.spawn(self._local.release(pinned), "catalogs that ended statements used")
        return pinned

    def follow(self, spec: StoredTable, log: Log) -> None:
        """Let statements read a version with this log."""
        self._logs.follow(spec, log)

    async def load(self, table: TableName, spec: StoredTable, log: Log = ()) -> int:
        """Load each executor's share of a version into its memory, and return the row count.

        Raises:
            QueryError: the version does not fit or cannot be read, or violates a unique key.
        """
        return await self._loader.load(table, spec, log)

    async def put_back(self, table: TableName, spec: StoredTable, log: Log = ()) -> int:
        """Restore damaged chunks from the executors' memory, and return their number."""
        return await self._loader.put_back(table, spec, log)

    def _accelerated(self) -> list[tuple[TableName, StoredTable, Log]]:
        tables = self._snapshot.tables if self._snapshot is not None else {}
        return [
            (name, version, self._logs.log_of(version))
            for name, spec in tables.items()
            if (version := spec.version) is not None
        ]

    def progress(self, query_id: QueryId) -> StatementProgress | None:
        """Return the progress of a query that runs in stages, or None."""
        return self._staged.progress(query_id)

    def stages(self, query_id: QueryId) -> tuple[StageProgress, ...]:
        """Return the stages of a query that runs in stages."""
        return self._staged.stages(query_id)

    def under_way(self) -> Sequence[ActiveStatement]:
        """Return the running statements and the catalogs that they use."""
        return self._pins.under_way()

    def executors(self) -> tuple[ExecutorStatus, ...]:
        """Return the status of every executor."""
        return self._membership.executors()

    async def aclose(self) -> None:
        """Close the planner client, the local engine and the fleet."""
        await self._asking.aclose()
        await self._tasks.aclose()
        await self._local.aclose()
        await self._fleet.aclose()

    async def _execute(
        self, query_id: QueryId, statement: Statement, snapshot: CatalogSnapshot
    ) -> BatchStream:
        statement = replace(statement, catalog_version=snapshot.version)
        if statement.index is not None:
            run = partial(self._indexed.run_order, query_id, statement, snapshot)
            try:
                return await self.quarantine.run_statement(query_id, statement, run)
            except NotDistributableError as exc:
                if statement.index.is_required:
                    raise
                extra = {"query_id": query_id, "cause": exc.message}
                logger.debug("search runs without an index", extra=extra)
            statement = replace(statement, index=None)
        started = time.perf_counter()
        async with self._asking.asked(statement) as answer:
            decision = answer.decision
            if not isinstance(decision, LookedUp):
                if isinstance(decision, Staged):
                    self.tallies.planned((time.perf_counter() - started) * 1000)
                return await self._begun(query_id, statement, snapshot, answer)
            narrowed = following.narrowed(statement, {decision.table}, snapshot.tables)
            stream = await self._lookups.run_lookup(query_id, narrowed, decision.owner)
            if stream is not None:
                return stream
        async with self._asking.asked(statement, may_look_up=False) as answer:
            return await self._begun(query_id, statement, snapshot, answer)

    async def _begun(
        self,
        query_id: QueryId,
        statement: Statement,
        snapshot: CatalogSnapshot,
        answer: RunDecision,
    ) -> BatchStream:
        match answer.decision:
            case Explained() as explained:
                return await self._diagnoses.run_explain(
                    query_id, statement, snapshot, answer, explained
                )
            case Here(tables):
                narrowed = following.narrowed(statement, tables, snapshot.tables)
                return await self._local.execute(query_id, narrowed)
            case Whole(tables, written) as whole:
                narrowed = following.narrowed(statement, tables, snapshot.tables)
                run = self._whole.at_owner if whole.is_at_owner else self._whole.anywhere
                return await self.quarantine.run_statement(
                    query_id, statement, lambda: run(query_id, narrowed, written)
                )
            case Staged(tables) as staged:
                narrowed = following.narrowed(statement, tables, snapshot.tables)
                return await self.quarantine.run_statement(
                    query_id,
                    statement,
                    lambda: self._in_stages(query_id, narrowed, snapshot, answer, staged),
                )
            case other:
                raise AssertionError(f"{other} is not a decision for a statement")

    async def _in_stages(
        self,
        query_id: QueryId,
        statement: Statement,
        snapshot: CatalogSnapshot,
        answer: RunDecision,
        staged: Staged,
    ) -> BatchStream:
        try:
            version = snapshot.version
            running = await self._staged.run_stages(query_id, statement, version, answer, staged)
            return running.stream
        except (NotDistributableError, OutOfMemoryQueryError) as exc:
            # Exchanges stay in memory, while a single executor can spill to disk.
            logger.info(
                "query runs whole after its stages failed",
                extra={"query_id": query_id, "cause": exc.message},
            )
        except InvalidQueryError as exc:
            # Planning succeeded, so the error comes from a fragment whose plan the engine reads
            # differently. Run whole, the statement succeeds or reports its own error.
            extra = {"query_id": query_id, "cause": exc.message}
            logger.warning("fragment was rejected; query runs whole", extra=extra)
        return await self._whole.anywhere(query_id, statement, None)
