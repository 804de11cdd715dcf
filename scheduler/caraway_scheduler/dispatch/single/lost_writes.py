"""Writes whose executor was lost: the scheduler's own engine looks up their commits."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import pyarrow as pa

from caraway_core.errors import CarawayError, ExecutionError, ExecutorLostError
from caraway_core.ids import TableName
from caraway_core.process import write_marks
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.wrapped_streams import WrappedStream
from caraway_core.statements import Statement
from caraway_core.statements.questions import CommitQuestion
from caraway_scheduler.dispatch.tasks.merging import FoundStream

Ask = Callable[[CommitQuestion], Awaitable[int | None]]
_COUNTED = pa.schema([pa.field("count", pa.uint64(), nullable=False)])


class LostWrites:
    """Finds out what became of writes whose executor was lost."""

    def __init__(self, ask: Ask) -> None:
        """Take what looks for a commit."""
        self._ask = ask

    def marked(self, statement: Statement) -> Statement:
        """Give a write a mark, by which its commit is found."""
        return replace(statement, mark=write_marks.new())

    async def answer(
        self,
        statement: Statement,
        table: TableName,
        unknown: ExecutionError,
        lost: ExecutorLostError,
    ) -> BatchStream:
        """Return the answer of a write that was lost before it had one. See `count`."""
        rows = pa.Table.from_batches([await self.count(statement, table, unknown, lost)])
        return FoundStream(rows, reads_only_catalog=False, written=table)

    async def count(
        self,
        statement: Statement,
        table: TableName,
        unknown: ExecutionError,
        lost: ExecutorLostError,
    ) -> pa.RecordBatch:
        """Return the count of a write whose commit is in a table.

        Raises:
            ExecutionError: there is no such commit so far; or `unknown`, where nobody can tell.
        """
        about = Statement("", {}, defines=statement.defines, mark=statement.mark)
        try:
            count = await write_marks.found(partial(self._ask, CommitQuestion(about, table)))
        except CarawayError:
            raise unknown from lost
        if count is None:
            raise ExecutionError(
                f"{lost.message}; no row was written so far, but the executor may still commit "
                "them: look before you run it again"
            ) from lost
        return pa.RecordBatch.from_arrays([pa.array([count], pa.uint64())], schema=_COUNTED)


class WriteAnswer(WrappedStream):
    """The answer of a write; if its executor is lost, the one that its commit has."""

    def __init__(self, stream: BatchStream, statement: Statement, lost: LostWrites) -> None:
        super().__init__(stream)
        self._statement = statement
        self._lost = lost
        self._has_count = False

    async def __anext__(self) -> pa.RecordBatch:
        try:
            batch = await super().__anext__()
        except ExecutionError as exc:
            lost = exc.__cause__
            if self.written is None or not isinstance(lost, ExecutorLostError):
                raise
            if self._has_count:
                raise StopAsyncIteration from exc
            batch = await self._lost.count(self._statement, self.written, exc, lost)
            batch = pa.RecordBatch.from_arrays(
                [batch.column(0).cast(self.schema.types[0])], schema=self.schema
            )
        self._has_count = True
        return batch
