"""Runs statements whole on one executor: those that are small, write, or look up few rows."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from caraway_core.errors import (
    CarawayError,
    CatalogMovedError,
    ExecutionError,
    ExecutorLostError,
    ExecutorsLostError,
    ShuttingDownError,
)
from caraway_core.ids import ExecutorId, QueryId, TableName
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Fleet
from caraway_core.statements import Statement
from caraway_engine.rows import plain
from caraway_scheduler.dispatch.single.lost_writes import LostWrites, WriteAnswer
from caraway_scheduler.dispatch.single.memory_owner import MemoryOwner
from caraway_scheduler.dispatch.tasks.merging import MergedStream
from caraway_scheduler.dispatch.tasks.placing import none_ready
from caraway_scheduler.dispatch.tasks.reports import FinishedTask, WorkReports
from caraway_scheduler.dispatch.tasks.running import ATTEMPTS
from caraway_scheduler.dispatch.tasks.storing import Attempts, PersistentWord, StoredTotal
from caraway_scheduler.membership import Membership

_Ended = Callable[[int, int], None]
logger = logging.getLogger(__name__)


class WholeRunner:
    """Sends whole statements to the least busy executor, or to the owner of their tables."""

    def __init__(
        self,
        fleet: Fleet,
        membership: Membership,
        origin: str,
        reports: WorkReports,
        owner: MemoryOwner,
        lost_writes: LostWrites,
    ) -> None:
        self._fleet = fleet
        self._membership = membership
        self._origin = origin
        self._reports = reports
        self._owner = owner
        self._lost_writes = lost_writes
        self._under_way: Counter[ExecutorId] = Counter()

    async def anywhere(
        self, query_id: QueryId, statement: Statement, written: TableName | None
    ) -> BatchStream:
        """Run a statement on the least busy executor, and on another if that is lost.

        A stored answer of a statement that only reads is rerun even if its executor is lost later.
        """
        if written is not None:
            statement = self._lost_writes.marked(statement)
        if statement.store is None or written is not None:
            return await self._somewhere(query_id, lambda: statement, written)
        attempts = Attempts(statement.store)

        async def run(_cause: CarawayError | None = None) -> BatchStream:
            return await self._somewhere(
                query_id, lambda: replace(statement, store=attempts.another()), written
            )

        return PersistentWord(await run(), attempts, run, ATTEMPTS - 1)

    async def at_owner(
        self, query_id: QueryId, statement: Statement, written: TableName | None
    ) -> BatchStream:
        """Run a statement on the owner of tables in memory; a write must not run twice."""
        executor_id = await self._owner.find(self._ready)
        if written is not None:
            statement = self._lost_writes.marked(statement)
        try:
            return await self.at(executor_id, query_id, statement)
        except ExecutorLostError as exc:
            self._reports.on_lost(exc.executor_id, exc.cause)
            wrote = "; it may or may not have written" if written else ""
            unknown = ExecutionError(
                f"{exc.message}, and with it the rows of `memory:` datasets{wrote}"
            )
            return await self._answered(statement, written, unknown, exc)

    async def _somewhere(
        self, query_id: QueryId, next_try: Callable[[], Statement], written: TableName | None
    ) -> BatchStream:
        last: ExecutorLostError | ShuttingDownError | CatalogMovedError | None = None
        sent: Statement | None = None
        leaving: set[ExecutorId] = set()
        for _ in range(ATTEMPTS):
            ready = [each for each in self._ready() if each not in leaving]
            if not ready:
                raise last if isinstance(last, CatalogMovedError) else none_ready()
            executor_id = self.idlest(ready)
            try:
                sent = next_try()
                return await self.at(executor_id, query_id, sent)
            except ExecutorLostError as exc:
                self._reports.on_lost(exc.executor_id, exc.cause)
                last = exc
                if written is not None:
                    break
            except (CatalogMovedError, ShuttingDownError) as exc:
                # Refused before any work was done, so even a statement that writes may run
                # elsewhere.
                leaving.add(executor_id)
                last = exc
        assert last is not None and sent is not None
        if isinstance(last, CatalogMovedError):
            raise last
        if written is None or not isinstance(last, ExecutorLostError):
            raise ExecutorsLostError(f"{last.message}; run the statement again") from last
        unknown = ExecutionError(
            f"{last.message}; it may or may not have written, look before you run it again"
        )
        return await self._answered(sent, written, unknown, last)

    async def _answered(
        self,
        statement: Statement,
        written: TableName | None,
        unknown: ExecutionError,
        lost: ExecutorLostError,
    ) -> BatchStream:
        """Return the answer of a statement that was lost, if its commit is there.

        Raises:
            ExecutionError: `unknown`, or another one that says more.
        """
        if written is None or statement.store is not None:
            raise unknown from lost
        return await self._lost_writes.answer(statement, written, unknown, lost)

    def idlest(self, executors: Sequence[ExecutorId]) -> ExecutorId:
        """Return the executor that runs the fewest whole statements."""
        return min(executors, key=lambda each: self._under_way[each])

    async def at(
        self, executor_id: ExecutorId, query_id: QueryId, statement: Statement
    ) -> BatchStream:
        """Run a statement on one executor.

        Raises:
            ExecutorLostError, ShuttingDownError: it must be run elsewhere.
        """
        ended = self._begun(executor_id, query_id)
        stream = await self._opened(executor_id, query_id, statement, ended)
        merged = MergedStream(
            [stream],
            stream.schema,
            stream.reads_only_catalog,
            ended,
            reports=self._reports,
        )
        merged.written = stream.written
        if statement.store is not None:
            merged.measure = StoredTotal(statement.store.most_bytes).add
        elif statement.mark:
            return WriteAnswer(merged, statement, self._lost_writes)
        return merged

    async def rows_at(
        self, executor_id: ExecutorId, query_id: QueryId, statement: Statement
    ) -> tuple[pa.Table, bool]:
        """Run a statement with few rows that only reads; return all of them.

        The last value says whether they stay the same while no table changes.

        Raises:
            ExecutorLostError, ShuttingDownError: it must be run elsewhere.
        """
        ended = self._begun(executor_id, query_id)
        stream = await self._opened(executor_id, query_id, statement, ended)
        batches: list[pa.RecordBatch] = []
        try:
            async for batch in stream:
                batches.append(plain.restored(batch, stream.schema))
        finally:
            await stream.aclose()
            sizes = (each.get_total_buffer_size() for each in batches)
            ended(sum(each.num_rows for each in batches), sum(sizes))
        return pa.Table.from_batches(batches, stream.schema), stream.reads_only_catalog

    def _begun(self, executor_id: ExecutorId, query_id: QueryId) -> _Ended:
        """Count a statement as under way; the result is called once, with its rows and bytes."""
        self._under_way[executor_id] += 1
        self._reports.tallies.assigned(executor_id)
        started = time.perf_counter()

        def ended(rows: int, size_bytes: int) -> None:
            self._under_way[executor_id] -= 1
            elapsed_ms = (time.perf_counter() - started) * 1000
            self._reports.on_ran(
                FinishedTask(query_id, "whole", "the whole statement", 0, executor_id, rows,
                    size_bytes, elapsed_ms, time.time_ns())
            )  # fmt: skip

        return ended

    async def _opened(
        self, executor_id: ExecutorId, query_id: QueryId, statement: Statement, ended: _Ended
    ) -> BatchStream:
        try:
            return await self._fleet.execute(executor_id, query_id, statement, self._origin)
        except BaseException as exc:
            ended(0, 0)
            if isinstance(exc, ExecutorLostError):
                await self._reports.on_loss(query_id, executor_id)
            raise

    def _ready(self) -> list[ExecutorId]:
        return [member.executor_id for member in self._membership.ready()]


class LookupRunner:
    """Sends lookups to executors; a failed lookup is planned like any other statement."""

    def __init__(self, membership: Membership, whole: WholeRunner) -> None:
        self._membership = membership
        self._whole = whole

    async def run_lookup(
        self, query_id: QueryId, statement: Statement, owner: ExecutorId | None
    ) -> BatchStream | None:
        """Run a lookup on the owner of its rows, or on any executor; None if that is lost.

        Raises:
            QueryError: the lookup failed on the executor.
        """
        executor_id = owner or self._idlest()
        if executor_id is None:
            return None
        try:
            return await self._whole.at(executor_id, query_id, statement)
        except ExecutorLostError as exc:
            self._membership.lost(exc.executor_id, exc.cause)
            cause = exc.message
        except (CatalogMovedError, ShuttingDownError) as exc:
            cause = exc.message
        logger.info(
            "lookup is planned as a statement", extra={"query_id": query_id, "cause": cause}
        )
        return None

    def _idlest(self) -> ExecutorId | None:
        ready = [member.executor_id for member in self._membership.ready()]
        return self._whole.idlest(ready) if ready else None
