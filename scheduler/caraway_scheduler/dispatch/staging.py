"""Statements that run in stages, on all executors."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from caraway_core.changes import Logs
from caraway_core.ids import ExecutorId, QueryId, TableName
from caraway_core.protocols.dispatch import Progress, Statement
from caraway_core.protocols.fleet import Fleet
from caraway_core.protocols.storing import kept_schema, stored_schema
from caraway_engine import distribution
from caraway_engine.distribution import Analysis
from caraway_engine.sessions import Session
from caraway_engine.stages import Cluster, Planner, Policy, StageGraph, TableFacts
from caraway_scheduler.dispatch import following, sharing_out
from caraway_scheduler.dispatch.driving import Drive
from caraway_scheduler.dispatch.merging import MergedStream
from caraway_scheduler.dispatch.own_files import OwnFiles
from caraway_scheduler.dispatch.placing import Slots, none_ready
from caraway_scheduler.dispatch.running import READY_WAIT_S, Here, Query, Ran, StageRunner
from caraway_scheduler.dispatch.storing import StoredTotal
from caraway_scheduler.dispatch.tallies import DispatchTallies
from caraway_scheduler.membership import Membership

_STREAMS_PER_SLOT = 2
_UNLIMITED = 2**50


@dataclass(slots=True)
class _UnderWay:
    """A query in stages, from its plan to the end of its answer."""

    drive: Drive
    stream: MergedStream | None = None


@dataclass(frozen=True, slots=True)
class Staged:
    """A query whose last stage streams, and what knows how it was made."""

    stream: MergedStream
    drive: Drive
    runner: StageRunner


class StagedRunner:
    """Plans stages for the executors that are ready, and runs them."""

    def __init__(
        self,
        fleet: Fleet,
        membership: Membership,
        here: Here,
        origin: str,
        tallies: DispatchTallies,
        policy: Policy,
        own_files: OwnFiles,
        on_ran: Callable[[Ran], None],
    ) -> None:
        self._fleet = fleet
        self._membership = membership
        self._here = here
        self._origin = origin
        self._tallies = tallies
        self._policy = policy
        self._own_files = own_files
        self._on_ran = on_ran
        self._facts: tuple[Session, frozenset[TableName], Mapping[TableName, TableFacts]] | None = (
            None
        )
        self._under_way: dict[QueryId, _UnderWay] = {}

    def progress(self, query_id: QueryId) -> Progress | None:
        """Tell how far a query is; None for one that does not run in stages."""
        query = self._under_way.get(query_id)
        if query is None:
            return None
        return query.drive.progress(query.stream.ended if query.stream else 0)

    async def wait_for_executor(self) -> None:
        """Wait until an executor is ready.

        Raises:
            OverloadedError: none is for long.
        """
        if self._membership.ready():
            return
        if not await self._membership.wait_ready(1, READY_WAIT_S):
            raise none_ready()

    def ready(self) -> list[ExecutorId]:
        """Name the executors that may work."""
        return [member.executor_id for member in self._membership.ready()]

    def divides(self, session: Session, analysis: Analysis, logs: Logs) -> bool:
        """Whether any table that a statement reads is worth sharing out."""
        return bool(self._cluster(session, logs).divided(analysis.widest_reads))

    def planned(
        self, session: Session, analysis: Analysis, logs: Logs
    ) -> tuple[Planner, StageGraph]:
        """Plan the stages of a statement, as far as sizes are known; blocks.

        Raises:
            NotDistributableError: it has to run whole.
        """
        assert analysis.plan is not None
        cluster = self._cluster(session, logs)
        divided = cluster.divided(analysis.widest_reads)
        planner = Planner(analysis.plan, cluster, session.stage_schemas(), divided)
        return planner, planner.advance({})

    async def run(
        self,
        query_id: QueryId,
        statement: Statement,
        session: Session,
        analysis: Analysis,
        planner: Planner,
        graph: StageGraph,
    ) -> Staged:
        """Run a statement in stages, until its last stage streams.

        Raises:
            NotDistributableError: what it reads cannot be shared out.
            QueryError: a task failed, or was lost too often.
        """
        slots = Slots(self.ready, planner.cluster.slots, self._membership.is_draining)
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
            self._here,
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
        return Staged(stream, drive, runner)

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

    def _close(self, query_id: QueryId, drive: Drive, runner: StageRunner) -> None:
        self._under_way.pop(query_id, None)
        drive.close()
        runner.close()


def is_staged(graph: StageGraph) -> bool:
    """Whether there is more to do than one task does."""
    return bool(graph.stages) or graph.root is None or graph.root.layout != "single"
