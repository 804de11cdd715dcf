"""Runs EXPLAIN and EXPLAIN ANALYZE on a cluster."""

import time
from dataclasses import replace

import pyarrow as pa

from caraway_core.errors import NotDistributableError
from caraway_core.ids import ExecutorId, QueryId
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_engine.routing import Described, Explained, Staged, Whole
from caraway_scheduler.dispatch.explanations import explaining, profiling
from caraway_scheduler.dispatch.planning import following
from caraway_scheduler.dispatch.planning.asking import PlannerClient, RunDecision
from caraway_scheduler.dispatch.planning.local_engine import LocalEngine
from caraway_scheduler.dispatch.single.whole import WholeRunner
from caraway_scheduler.dispatch.stages.staging import StagedRunner


class Diagnoses:
    """Runs EXPLAIN statements."""

    def __init__(
        self, local: LocalEngine, whole: WholeRunner, staged: StagedRunner, asking: PlannerClient
    ) -> None:
        self._local = local
        self._whole = whole
        self._staged = staged
        self._asking = asking

    async def run_explain(
        self,
        query_id: QueryId,
        statement: Statement,
        snapshot: CatalogSnapshot,
        answer: RunDecision,
        explained: Explained,
    ) -> BatchStream:
        """Run an EXPLAIN; its answer is assembled in the scheduler, and stored from there.

        Raises:
            QueryError: the statement cannot be planned, or failed.
        """
        order, statement = statement.store, replace(statement, store=None)
        match explained.way:
            case Described(tables) as described:
                statement = following.narrowed(statement, tables, snapshot.tables)
                stream = await self._described(query_id, statement, answer, described)
            case Staged(tables) as staged:
                statement = following.narrowed(statement, tables, snapshot.tables)
                stream = await self._ran(
                    query_id, statement, snapshot, answer, staged, is_verbose=explained.is_verbose
                )
            case Whole(tables) as whole:
                statement = following.narrowed(statement, tables, snapshot.tables)
                stream = await self._in_one(query_id, statement, whole, is_run=explained.is_run)
            case other:
                raise AssertionError(f"{other} is not a decision for an EXPLAIN")
        return stream if order is None else await self._local.stored(await _rows(stream), order)

    async def _described(
        self, query_id: QueryId, statement: Statement, answer: RunDecision, described: Described
    ) -> BatchStream:
        """Return the engine's plan together with the distributed plan."""

        def executor(number: int) -> ExecutorId:
            return answer.executors[number % len(answer.executors)]

        text = explaining.listed(described, executor)
        local = await self._local.execute(query_id, statement)
        return explaining.ExplainedStream(local, {"distributed_plan": text})

    async def _in_one(
        self, query_id: QueryId, statement: Statement, whole: Whole, *, is_run: bool
    ) -> BatchStream:
        if not is_run or whole.written is not None:
            stream = await self._local.execute(query_id, statement)
        elif whole.is_at_owner:
            stream = await self._whole.at_owner(query_id, statement, whole.written)
        else:
            stream = await self._whole.anywhere(query_id, statement, whole.written)
        said = {"distributed_plan": explaining.whole(whole.objection)}
        return explaining.ExplainedStream(stream, said)

    async def _ran(
        self,
        query_id: QueryId,
        statement: Statement,
        snapshot: CatalogSnapshot,
        answer: RunDecision,
        staged: Staged,
        *,
        is_verbose: bool,
    ) -> BatchStream:
        """Run a statement in stages, and describe how each stage ran."""
        began_s = time.perf_counter()
        try:
            version = snapshot.version
            running = await self._staged.run_stages(
                query_id, statement, version, answer, staged, is_profiled=True
            )
        except NotDistributableError as exc:
            whole = Whole(staged.tables, None, exc.message)
            return await self._in_one(query_id, statement, whole, is_run=True)
        count = explaining.RootCount()
        try:
            async for batch in running.stream:
                count.add(batch)
            elapsed_ms = (time.perf_counter() - began_s) * 1000
            described = await self._asking.described(answer.plan)
            runner = running.runner
            text = explaining.listed(described, runner.executor, runner.ran, count)
            texts = {"profile": profiling.document(runner.ran, elapsed_ms)} if is_verbose else {}
        finally:
            await running.stream.aclose()
        return explaining.TextStream({**texts, "distributed_plan_with_metrics": text})


async def _rows(stream: BatchStream) -> pa.RecordBatch:
    """Read the answer of an EXPLAIN, which has only a few rows."""
    batches = [batch async for batch in stream]
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=stream.schema)
    return pa.concat_batches(batches)
