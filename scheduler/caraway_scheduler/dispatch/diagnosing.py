"""EXPLAIN on a cluster: where a statement would run, or how it ran."""

import asyncio
from dataclasses import replace
from functools import partial

from caraway_core.errors import NotDistributableError
from caraway_core.ids import QueryId
from caraway_core.protocols.dispatch import BatchStream, Statement
from caraway_engine import distribution
from caraway_engine.distribution import Analysis
from caraway_engine.sessions import Session
from caraway_engine.stages import Planner, StageGraph
from caraway_scheduler.dispatch import explaining, following, sharing_out, staging
from caraway_scheduler.dispatch.local_engine import LocalEngine
from caraway_scheduler.dispatch.placing import Slots
from caraway_scheduler.dispatch.staging import StagedRunner
from caraway_scheduler.dispatch.whole import WholeRunner


class Diagnoses:
    """Runs statements that ask about statements."""

    def __init__(self, local: LocalEngine, whole: WholeRunner, staged: StagedRunner) -> None:
        self._local = local
        self._whole = whole
        self._staged = staged

    async def run(self, query_id: QueryId, statement: Statement, session: Session) -> BatchStream:
        """Run an EXPLAIN or its like. What is said of it is put together here, and stored here.

        Raises:
            QueryError: the statement cannot be planned, or failed as it ran.
        """
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
        await self._staged.wait_for_executor()
        if not self._staged.divides(session, analysis, statement.logs):
            return await self._explained_whole(query_id, statement, session, analysis, inner)
        try:
            planner, graph = await asyncio.to_thread(
                self._staged.planned, session, analysis, statement.logs
            )
            foreseen = graph if inner.is_run else None
            if foreseen is None:
                foreseen = await asyncio.to_thread(explaining.foreseen, planner)
        except NotDistributableError as exc:
            analysis = replace(analysis, objection=exc.message)
            return await self._explained_whole(query_id, statement, session, analysis, inner)
        if not staging.is_staged(graph):
            return await self._explained_whole(query_id, statement, session, analysis, inner)
        if inner.is_run:
            try:
                return await self._explained_run(
                    query_id, statement, session, analysis, planner, graph
                )
            except NotDistributableError as exc:
                analysis = replace(analysis, objection=exc.message)
                return await self._explained_whole(query_id, statement, session, analysis, inner)
        slots = Slots(self._staged.ready, planner.cluster.slots)
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
        staged = await self._staged.run(query_id, statement, session, analysis, planner, graph)
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
