"""Runs statements in stages on all executors."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from caraway_core.ids import CatalogVersion, ExecutorId, QueryId
from caraway_core.protocols.dispatch import StageProgress, StatementProgress
from caraway_core.protocols.fleet import Fleet
from caraway_core.protocols.offers import Offer, OfferedPart, OfferOrder, new_offer_id
from caraway_core.protocols.storing import kept_schema, stored_schema
from caraway_core.statements import Statement
from caraway_engine.routing import Staged
from caraway_engine.stages import Stage
from caraway_scheduler.dispatch.planning.asking import PlannerClient, RunDecision
from caraway_scheduler.dispatch.stages import offering, progressing
from caraway_scheduler.dispatch.stages.driving import Drive
from caraway_scheduler.dispatch.stages.offering import OfferedStream
from caraway_scheduler.dispatch.tasks.merging import MergedStream
from caraway_scheduler.dispatch.tasks.placing import Slots
from caraway_scheduler.dispatch.tasks.reports import FinishedTask, WorkReports
from caraway_scheduler.dispatch.tasks.running import Here, StageRunner
from caraway_scheduler.dispatch.tasks.staged_query import StagedQuery
from caraway_scheduler.dispatch.tasks.storing import StoredTotal
from caraway_scheduler.membership import Membership

_STREAMS_PER_SLOT = 2


@dataclass(slots=True)
class _UnderWay:
    """A staged query, from its plan to the end of its answer."""

    drive: Drive
    runner: StageRunner
    stream: MergedStream | OfferedStream | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """A staged query whose last stage streams, with its driver and runner."""

    stream: MergedStream | OfferedStream
    drive: Drive
    runner: StageRunner


class StagedRunner:
    """Runs the stages of statements on the executors that are ready."""

    def __init__(
        self,
        fleet: Fleet,
        membership: Membership,
        here: Here,
        origin: str,
        reports: WorkReports,
        asking: PlannerClient,
    ) -> None:
        self._fleet = fleet
        self._membership = membership
        self._here = here
        self._origin = origin
        self._reports = reports
        self._asking = asking
        self._under_way: dict[QueryId, _UnderWay] = {}

    def progress(self, query_id: QueryId) -> StatementProgress | None:
        """Return the progress of a query; None if it does not run in stages."""
        query = self._under_way.get(query_id)
        if query is None:
            return None
        return query.drive.progress(query.stream.ended if query.stream else 0)

    def stages(self, query_id: QueryId) -> tuple[StageProgress, ...]:
        """Return the stages of a query as planned so far; none if it does not run in stages."""
        query = self._under_way.get(query_id)
        if query is None:
            return ()
        return progressing.stages(query.drive, query.runner, query.stream)

    def ready(self) -> list[ExecutorId]:
        """Return the executors that are ready."""
        return [member.executor_id for member in self._membership.ready()]

    async def run_stages(
        self,
        query_id: QueryId,
        statement: Statement,
        version: CatalogVersion,
        answer: RunDecision,
        staged: Staged,
        *,
        is_profiled: bool = False,
    ) -> Running:
        """Run a statement in stages, until its last stage streams.

        Raises:
            NotDistributableError: the rest of its plan can only run whole.
            PlanLostError: its planner is gone.
            QueryError: a task failed, or was lost too often.
        """
        slots = Slots(self.ready, answer.executors, self._membership.is_draining)
        schema = staged.schema
        order = statement.store and replace(statement.store, schema=schema)
        query = StagedQuery(
            query_id,
            self._origin,
            version,
            staged.shares.__getitem__,
            order,
            statement.in_background,
            statement.logs,
            statement.found or (),
            statement.trace_id,
            is_profiled,
        )
        runner = StageRunner(
            query,
            self._fleet,
            slots,
            self._reports,
            self._here,
            self._membership,
        )
        drive = Drive(partial(self._asking.advance, answer.plan), staged.graph, runner)
        under_way = self._under_way[query_id] = _UnderWay(drive, runner)
        try:
            root = await drive.root()
            answering = time.perf_counter()
            parts = await self._offered(runner, root, slots, schema, statement.offer)
            openers = [partial(runner.stream, root, number) for number in range(root.count)]
            at_once = _STREAMS_PER_SLOT * len(slots)
            if parts:
                openers.clear()
            streams = await asyncio.gather(*(opener() for opener in openers[:at_once]))
        except BaseException:
            self._close(query_id, drive, runner)
            raise

        def close(rows: int, size_bytes: int) -> None:
            self._close(query_id, drive, runner)
            elapsed_ms = (time.perf_counter() - answering) * 1000
            where = None if runner.is_answered_here else slots.executor(0)
            self._reports.on_ran(
                FinishedTask(query_id, root.name, root.note, 0, where, rows, size_bytes,
                    elapsed_ms, time.time_ns())
            )  # fmt: skip

        if parts:
            offered = under_way.stream = OfferedStream(
                query_id,
                schema,
                parts,
                len(parts) == 1,
                self._fleet,
                self._reports,
                close,
            )
            return Running(offered, drive, runner)
        stream = MergedStream(
            streams,
            stored_schema(kept_schema(schema, order.cut)) if order else schema,
            # With a log, the same statement returns other rows after further changes.
            staged.reads_only_catalog and not statement.logs,
            close,
            openers[at_once:],
            self._reports,
        )
        if order:
            stream.measure = StoredTotal(order.most_bytes).add
        under_way.stream = stream
        return Running(stream, drive, runner)

    async def _offered(
        self,
        runner: StageRunner,
        root: Stage,
        slots: Slots,
        schema: pa.Schema,
        order: OfferOrder | None,
    ) -> Sequence[OfferedPart]:
        """Have executors offer the tasks of the last stage to clients; nothing: they cannot."""
        if order is None or not len(schema) or await runner.is_answered_soon(root):
            return ()
        places = {each.executor_id: each.flight for each in self._membership.ready()}
        if not all(order.allows(places.get(slots.executor(each))) for each in range(len(slots))):
            return ()
        at_once = _STREAMS_PER_SLOT * len(slots)

        async def offer(number: int) -> OfferedPart:
            offer = Offer(
                new_offer_id(), order.credential, order.wait_s, schema, is_eager=number < at_once
            )
            executor_id = await runner.offer(root, number, offer)
            place = places.get(executor_id)
            return OfferedPart(offer.offer_id, executor_id, place.location if place else "")

        return await offering.make(self._fleet, [offer(each) for each in range(root.count)])

    def _close(self, query_id: QueryId, drive: Drive, runner: StageRunner) -> None:
        self._under_way.pop(query_id, None)
        drive.close()
        runner.close()
