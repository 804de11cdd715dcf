"""Dispatch to a cluster: here, whole to one executor, or in stages to all of them."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from caraway_core.changes import Log, Logs
from caraway_core.errors import CatalogMovedError, NotDistributableError
from caraway_core.ids import ExecutorId, QueryId, TableName
from caraway_core.protocols.dispatch import (
    BatchStream,
    CatalogSnapshot,
    Executor,
    ExecutorStatus,
    Progress,
    Statement,
)
from caraway_core.protocols.fleet import Fleet, TableCatalog, Task, TaskTable
from caraway_core.protocols.storing import StoreOrder, kept_schema, stored_schema
from caraway_core.tables import StoredTable
from caraway_engine import distribution
from caraway_engine.distribution import Analysis
from caraway_engine.sessions import Session
from caraway_engine.stages import Cluster, Planner, Policy, StageGraph, TableFacts
from caraway_scheduler.dispatch import explaining, following, sharing_out
from caraway_scheduler.dispatch.driving import Drive
from caraway_scheduler.dispatch.following import KnownLogs
from caraway_scheduler.dispatch.loading import Loader
from caraway_scheduler.dispatch.lookups import LookupRunner
from caraway_scheduler.dispatch.memory_owner import MemoryOwner
from caraway_scheduler.dispatch.merging import MergedStream
from caraway_scheduler.dispatch.own_files import OwnFiles
from caraway_scheduler.dispatch.placing import Slots, none_ready
from caraway_scheduler.dispatch.running import ATTEMPTS, READY_WAIT_S, Query, Ran, StageRunner
from caraway_scheduler.dispatch.storing import StoredTotal
from caraway_scheduler.dispatch.tallies import DispatchTallies
from caraway_scheduler.dispatch.warming import Warmer
from caraway_scheduler.dispatch.whole import WholeRunner
from caraway_scheduler.membership import Membership

logger = logging.getLogger(__name__)
_STREAMS_PER_SLOT = 2
_UNLIMITED = 2**50


class LocalEngine(Executor, Protocol):
    """The engine of the scheduler itself: it plans, and answers what is known only here."""

    @property
    def session(self) -> Session | None: ...

    async def run(self, task: Task, inputs: Sequence[TaskTable]) -> BatchStream: ...

    async def stored(self, stream: BatchStream, order: StoreOrder) -> BatchStream: ...


class ClusterDispatch:
    """Chooses for each statement where it runs.

    What reads the scheduler's own tables, or no table, runs here. What is small, writes, or is
    not proven to survive being cut runs whole on one executor. Everything else runs in stages.
    """

    def __init__(
        self,
        fleet: Fleet,
        membership: Membership,
        local: LocalEngine,
        origin: str,
        tallies: DispatchTallies,
        owner: MemoryOwner,
        policy: Policy,
        own_files: OwnFiles,
    ) -> None:
        self._on_ran: Callable[[Ran], None] = lambda _ran: None
        self._fleet = fleet
        self._membership = membership
        self._local = local
        self._origin = origin
        self._tallies = tallies
        self._policy = policy
        self._own_files = own_files
        self._facts: tuple[Session, frozenset[TableName], Mapping[TableName, TableFacts]] | None = (
            None
        )
        self._under_way: dict[QueryId, _UnderWay] = {}
        self._logs = KnownLogs()
        self._loader = Loader(fleet, membership, origin, policy)
        self._whole = WholeRunner(
            fleet, membership, origin, tallies, owner, lambda ran: self._on_ran(ran)
        )
        self._lookups = LookupRunner(membership, self._whole, policy)
        self.warmer = Warmer(self._loader, membership, self._accelerated)
        membership.prepare = self.warmer.prepare

    def record_work(self, record: Callable[[Ran], None]) -> None:
        """Tell `record` of each piece of work that an executor did."""
        self._on_ran = record

    async def install(self, snapshot: CatalogSnapshot) -> Mapping[TableName, str]:
        """Give the catalog to every executor, then plan over it."""
        files = await asyncio.to_thread(self._own_files.find, snapshot.tables)
        catalog = TableCatalog(snapshot.version, self._origin, snapshot.tables, files)
        failed = dict(await self._membership.install(catalog))
        failed.update(await asyncio.to_thread(self._local.install, snapshot))
        return failed

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._execute(query_id, statement)
            except CatalogMovedError:
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    def follow(self, spec: StoredTable, log: Log) -> None:
        self._logs.follow(spec, log)

    async def load(self, table: TableName, spec: StoredTable, log: Log = ()) -> int:
        """Have each executor bring the pieces into memory that will be its share.

        Raises:
            QueryError: it does not fit, or cannot be read, or has a key twice that it must not.
        """
        return await self._loader.load(table, spec, log)

    def _accelerated(self) -> list[tuple[TableName, StoredTable, Log]]:
        session = self._local.session
        tables = session.snapshot.tables if session is not None else {}
        return [
            (name, spec, self._logs.of(spec))
            for name, spec in tables.items()
            if isinstance(spec, StoredTable)
        ]

    def progress(self, query_id: QueryId) -> Progress | None:
        query = self._under_way.get(query_id)
        if query is None:
            return None
        return query.drive.progress(query.stream.ended if query.stream else 0)

    def executors(self) -> tuple[ExecutorStatus, ...]:
        return self._membership.executors()

    async def aclose(self) -> None:
        self._local.close()
        await self._fleet.aclose()

    async def _execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        session = self._local.session
        if session is None:
            return await self._local.execute(query_id, statement)
        # In one go with the session: a log belongs to the version that the session has.
        statement = self._logs.given_to(statement)
        looked_up = await self._lookups.run(query_id, statement, session)
        if looked_up is not None:
            return looked_up
        started = time.perf_counter()
        analysis = session.recall(statement)
        if analysis is None:
            analysis = await asyncio.to_thread(session.analyse, statement)
        statement, analysis = following.narrowed(statement, analysis, session)
        if analysis.is_diagnostic:
            return await self._diagnosed(query_id, statement, session)
        if analysis.reads_system or not analysis.tables:
            return await self._local.execute(query_id, statement)
        if analysis.tables & distribution.memory_tables(session.snapshot.tables):
            return await self._whole.at_owner(query_id, statement, analysis)
        await self._wait_for_executor()
        if self._cluster(session, statement.logs).divided(analysis.widest_reads):
            try:
                planner, graph = await asyncio.to_thread(
                    self._planned, session, analysis, statement.logs
                )
                self._tallies.planned((time.perf_counter() - started) * 1000)
                if graph.stages or graph.root is None or graph.root.layout != "single":
                    staged = await self._staged(
                        query_id, statement, session, analysis, planner, graph
                    )
                    return staged.stream
            except NotDistributableError as exc:
                logger.info("runs whole", extra={"query_id": query_id, "cause": exc.message})
        return await self._whole.anywhere(query_id, statement, analysis)

    async def _diagnosed(
        self, query_id: QueryId, statement: Statement, session: Session
    ) -> BatchStream:
        """Run an EXPLAIN or its like. What is said of it is put together here, and stored here."""
        stream = await self._explained(query_id, replace(statement, store=None), session)
        if statement.store is None:
            return stream
        return await self._local.stored(stream, statement.store)

    async def _explained(
        self, query_id: QueryId, statement: Statement, session: Session
    ) -> BatchStream:
        """Add to what the engine says of a statement where the cluster would run it, or ran it."""
        inner = explaining.parse(statement.sql)
        if inner is None:
            return await self._local.execute(query_id, statement)
        wanted = replace(statement, sql=inner.statement)
        analysis = await asyncio.to_thread(session.analyse, wanted)
        statement, analysis = following.narrowed(statement, analysis, session)
        if analysis.reads_system or not analysis.tables:
            return await self._local.execute(query_id, statement)
        await self._wait_for_executor()
        if not self._cluster(session, statement.logs).divided(analysis.widest_reads):
            return await self._explained_whole(query_id, statement, session, analysis, inner)
        try:
            planner, graph = await asyncio.to_thread(
                self._planned, session, analysis, statement.logs
            )
            foreseen = graph if inner.is_run else None
            if foreseen is None:
                foreseen = await asyncio.to_thread(explaining.foreseen, planner)
        except NotDistributableError as exc:
            analysis = replace(analysis, objection=exc.message)
            return await self._explained_whole(query_id, statement, session, analysis, inner)
        if not graph.stages and graph.root is not None and graph.root.layout == "single":
            return await self._explained_whole(query_id, statement, session, analysis, inner)
        if inner.is_run:
            try:
                return await self._explained_run(
                    query_id, statement, session, analysis, planner, graph
                )
            except NotDistributableError as exc:
                analysis = replace(analysis, objection=exc.message)
                return await self._explained_whole(query_id, statement, session, analysis, inner)
        slots = Slots(self._ready, planner.cluster.slots)
        text = explaining.describe(
            foreseen,
            planner.schemas.text,
            slots.executor,
            read=partial(sharing_out.described, session, analysis.filters),
        )
        local = await self._local.execute(query_id, statement)
        return explaining.ExplainedStream(local, {"distributed_plan": text})

    async def _explained_whole(
        self,
        query_id: QueryId,
        statement: Statement,
        session: Session,
        analysis: Analysis,
        inner: explaining.Explained,
    ) -> BatchStream:
        if not inner.is_run or analysis.written is not None:
            stream = await self._local.execute(query_id, statement)
        elif analysis.tables & distribution.memory_tables(session.snapshot.tables):
            stream = await self._whole.at_owner(query_id, statement, analysis)
        else:
            stream = await self._whole.anywhere(query_id, statement, analysis)
        said = {"distributed_plan": explaining.whole(analysis.objection)}
        return explaining.ExplainedStream(stream, said)

    async def _explained_run(
        self,
        query_id: QueryId,
        statement: Statement,
        session: Session,
        analysis: Analysis,
        planner: Planner,
        graph: StageGraph,
    ) -> BatchStream:
        staged = await self._staged(query_id, statement, session, analysis, planner, graph)
        stream, drive, runner = staged.stream, staged.drive, staged.runner
        ran = explaining.RootCount()
        try:
            async for batch in stream:
                ran.add(batch)
            text = explaining.describe(
                drive.graph,
                planner.schemas.text,
                runner.executor,
                runner.ran,
                ran,
                partial(sharing_out.described, session, analysis.filters),
            )
        finally:
            await stream.aclose()
        return explaining.TextStream({"distributed_plan_with_metrics": text})

    async def _wait_for_executor(self) -> None:
        if self._membership.ready():
            return
        if not await self._membership.wait_ready(1, READY_WAIT_S):
            raise none_ready()

    def _ready(self) -> list[ExecutorId]:
        return [member.executor_id for member in self._membership.ready()]

    def _cluster(self, session: Session, logs: Logs) -> Cluster:
        members = self._membership.ready()
        return Cluster(
            max(1, len(members)),
            min((each.memory_bytes or _UNLIMITED for each in members), default=_UNLIMITED),
            self._facts_of(session, logs),
            self._policy,
        )

    def _facts_of(self, session: Session, logs: Logs) -> Mapping[TableName, TableFacts]:
        undivided = following.undivided(session, logs)
        if self._facts is None or self._facts[:2] != (session, undivided):
            tables = session.snapshot.tables
            # Shares name files by their paths, which these have only here.
            whole = {*self._own_files.tables(tables), *undivided}
            self._facts = session, undivided, distribution.facts(tables, whole)
        return self._facts[2]

    def _planned(
        self, session: Session, analysis: Analysis, logs: Logs
    ) -> tuple[Planner, StageGraph]:
        assert analysis.plan is not None
        cluster = self._cluster(session, logs)
        divided = cluster.divided(analysis.widest_reads)
        planner = Planner(analysis.plan, cluster, session.stage_schemas(), divided)
        return planner, planner.advance({})

    async def _staged(
        self,
        query_id: QueryId,
        statement: Statement,
        session: Session,
        analysis: Analysis,
        planner: Planner,
        graph: StageGraph,
    ) -> "_Staged":
        slots = Slots(self._ready, planner.cluster.slots, self._membership.is_draining)
        cut = await asyncio.to_thread(
            sharing_out.shares_of, session, planner.divided, analysis.filters, slots.names
        )
        order = statement.store and replace(statement.store, schema=analysis.schema)
        query = Query(
            query_id,
            self._origin,
            session.snapshot.version,
            cut.__getitem__,
            order,
            statement.in_background,
            statement.logs,
        )
        runner = StageRunner(
            query,
            self._fleet,
            slots,
            self._membership.lost,
            self._tallies,
            self._on_ran,
            self._local.run,
            partial(self._membership.wait_ready, 1, READY_WAIT_S),
        )
        drive = Drive(planner, graph, runner)
        under_way = self._under_way[query_id] = _UnderWay(drive)
        try:
            root = await drive.root()
            answering = time.perf_counter()
            openers = [partial(runner.stream, root, number) for number in range(root.count)]
            at_once = _STREAMS_PER_SLOT * len(slots)
            streams = await asyncio.gather(*(opener() for opener in openers[:at_once]))
        except BaseException:
            self._close(query_id, drive, runner)
            raise

        def close(rows: int, size_bytes: int) -> None:
            self._close(query_id, drive, runner)
            elapsed_ms = (time.perf_counter() - answering) * 1000
            where = None if runner.is_answered_here else slots.executor(0)
            self._on_ran(
                Ran(query_id, root.name, root.note, 0, where, rows, size_bytes,
                    elapsed_ms, time.time_ns())
            )  # fmt: skip

        stream = MergedStream(
            streams,
            stored_schema(kept_schema(analysis.schema, order.cut)) if order else analysis.schema,
            analysis.reads_only_catalog,
            close,
            openers[at_once:],
            self._membership.lost,
        )
        if order:
            stream.measure = StoredTotal(order.most_bytes).add
        under_way.stream = stream
        return _Staged(stream, drive, runner)

    def _close(self, query_id: QueryId, drive: Drive, runner: StageRunner) -> None:
        self._under_way.pop(query_id, None)
        drive.close()
        runner.close()


@dataclass(slots=True)
class _UnderWay:
    """A query in stages, from its plan to the end of its answer."""

    drive: Drive
    stream: MergedStream | None = None


@dataclass(frozen=True, slots=True)
class _Staged:
    stream: MergedStream
    drive: Drive
    runner: StageRunner
