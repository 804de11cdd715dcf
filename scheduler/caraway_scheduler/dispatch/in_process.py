"""Dispatches all statements to one executor in the scheduler's process."""

import asyncio
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import metadata

import pyarrow as pa

from caraway_core.changes import Log
from caraway_core.errors import NotDistributableError
from caraway_core.ids import ExecutorId, QueryId, TableName
from caraway_core.manifest.texts import memory
from caraway_core.protocols.dispatch import (
    BatchStream,
    Executor,
    ExecutorStatus,
    StageProgress,
    StatementProgress,
)
from caraway_core.protocols.wrapped_streams import WrappedStream
from caraway_core.releases.protocol_versions import PROTOCOL_VERSION
from caraway_core.statements import (
    ActiveStatement,
    CatalogSnapshot,
    ReadPoint,
    Statement,
    ViewFacts,
)
from caraway_core.statements.questions import Answer, StatementQuestion
from caraway_core.tables import StoredTable
from caraway_scheduler.dispatch.wrappers.pins import PinnedStream, Pins


@dataclass(slots=True)
class _Counts:
    """How many statements run, and how those before ended."""

    active: int = 0
    finished: int = 0
    failed: int = 0

    def end(self, *, is_whole: bool) -> None:
        """Count the end of a statement."""
        self.active -= 1
        if is_whole:
            self.finished += 1
        else:
            self.failed += 1


class InProcessDispatch:
    """A dispatch with one executor in this process."""

    def __init__(
        self, executor: Executor, executor_id: ExecutorId, cores: int = 0, memory_bytes: int = 0
    ) -> None:
        self._executor = executor
        self._status = ExecutorStatus(
            executor_id,
            "registered",
            address=platform.node(),
            cores=cores,
            memory_bytes=memory_bytes,
            build=metadata.version("caraway"),
            protocol_version=PROTOCOL_VERSION,
            reason="the catalog is not loaded yet",
        )
        self._logs: Mapping[str, Log] = {}
        self._pins = Pins()
        self._catalogs: tuple[CatalogSnapshot, ...] = ()
        self._counts = _Counts()

    async def install(self, snapshot: CatalogSnapshot) -> Mapping[TableName, str]:
        """Install a catalog, and return the definitions that failed."""
        # The executor switches at some point during this call, so statements may read either.
        self._catalogs = (*self._catalogs[-1:], snapshot)
        failed = await asyncio.to_thread(self._executor.install, snapshot)
        self._catalogs = (snapshot,)
        self._status = replace(
            self._status, state="ready", catalog_version=snapshot.version, reason=""
        )
        return failed

    def views(self) -> Mapping[TableName, ViewFacts]:
        """Return the facts of all views."""
        return self._executor.views

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Start a statement."""
        self._counts.active += 1
        if self._logs:
            # Logs of the statement itself have precedence, because it builds a version from them.
            statement = replace(statement, logs={**self._logs, **statement.logs})
        pin = self._pins.pin_catalogs(statement, *self._catalogs)
        try:
            stream = await self._executor.execute(query_id, statement)
        except NotDistributableError:
            # No failure: it is asked again without an index.
            pin.release()
            self._counts.end(is_whole=True)
            raise
        except BaseException:
            pin.release()
            self._counts.end(is_whole=False)
            raise
        return PinnedStream(_Counted(stream, self._counts), pin)

    async def ask(self, question: StatementQuestion[Answer]) -> Answer:
        """See `Dispatch.ask`."""
        return await self._executor.ask(question)

    @contextmanager
    def reading(self) -> Iterator[ReadPoint]:
        """Keep the logs; a catalog that changes meanwhile is gone."""
        logs = self._logs
        pin = self._pins.pin_catalogs(Statement("", {}, logs=logs), *self._catalogs)
        # While a catalog is installed, statements may read either.
        version = self._catalogs[0].version if len(self._catalogs) == 1 else None
        try:
            yield ReadPoint(version, logs)
        finally:
            pin.release()

    async def load(self, table: TableName, spec: StoredTable, log: Log = ()) -> int:
        """Load a version into memory, and return its row count."""
        return await self._executor.load(table, spec, log)

    async def put_back(self, table: TableName, spec: StoredTable, log: Log = ()) -> int:
        """Restore damaged chunks from memory, and return their number."""
        return await self._executor.put_back(table, spec, log)

    def follow(self, spec: StoredTable, log: Log) -> None:
        """Let statements read a version with this log."""
        # A new mapping each time, because running statements keep theirs.
        others = {key: each for key, each in self._logs.items() if key != spec.key}
        self._logs = {**others, spec.key: log} if log else others

    def progress(self, query_id: QueryId) -> StatementProgress | None:
        """Return None: statements here have no stages."""
        return None

    def stages(self, query_id: QueryId) -> tuple[StageProgress, ...]:
        """Return nothing: statements here have no stages."""
        return ()

    def under_way(self) -> Sequence[ActiveStatement]:
        """Return the running statements and the catalogs that they use."""
        return self._pins.under_way()

    def executors(self) -> tuple[ExecutorStatus, ...]:
        """Return the status of the one executor."""
        return (
            replace(
                self._status,
                memory_used_bytes=self._memory_used_bytes(),
                active_tasks=self._counts.active,
                finished_tasks=self._counts.finished,
                failed_tasks=self._counts.failed,
                holds=self._executor.holds,
            ),
        )

    async def aclose(self) -> None:
        """Close the executor."""
        self._executor.close()

    def _memory_used_bytes(self) -> int:
        return memory.resident_bytes() + self._executor.memory_used_bytes


class _Counted(WrappedStream):
    """A stream that reports once how it ended."""

    def __init__(self, stream: BatchStream, counts: _Counts) -> None:
        super().__init__(stream)
        self._counts: _Counts | None = counts

    async def __anext__(self) -> pa.RecordBatch:
        try:
            return await anext(self._batches)
        except StopAsyncIteration:
            self._end(is_whole=True)
            raise
        except BaseException:
            self._end(is_whole=False)
            raise

    async def aclose(self) -> None:
        """Close the stream, and report that it was not read completely."""
        self._end(is_whole=False)
        await self._stream.aclose()

    def _end(self, *, is_whole: bool) -> None:
        counts, self._counts = self._counts, None
        if counts is not None:
            counts.end(is_whole=is_whole)
