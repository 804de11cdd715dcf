"""Has statements create and drop tables of source catalogs, and the tables listed at once."""

from dataclasses import replace
from typing import Protocol, cast

import pyarrow as pa

from caraway_core.errors import ExecutionError
from caraway_core.ids import QueryId
from caraway_core.protocols.dispatch import BatchStream, Dispatch
from caraway_core.protocols.wrapped_streams import WrappedStream
from caraway_core.statements import Statement, TableWrite
from caraway_core.statements.definitions import TableDefinition
from caraway_core.statements.questions import Answer, StatementQuestion, WriteQuestion
from caraway_scheduler.dispatch.wrappers.wrapping import WrappedDispatch


class DefinedTables(Protocol):
    """What turns statements into those that dispatches run; see `TableDefinitions`."""

    def write_of(self, statement: Statement) -> TableWrite | None: ...

    async def planned(self, statement: Statement) -> Statement: ...

    async def note(self, definition: TableDefinition) -> None: ...


class DefiningDispatch(WrappedDispatch):
    """A dispatch whose statements may create and drop tables."""

    def __init__(self, inner: Dispatch, tables: DefinedTables) -> None:
        super().__init__(inner)
        self._tables = tables

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Plan a statement and start it.

        Raises:
            QueryError: it cannot be planned or started.
        """
        planned = await self._tables.planned(statement)
        stream = await self._inner.execute(query_id, planned)
        definition = planned.defines
        if definition is None:
            return stream
        if stream.written != definition.name:
            await stream.aclose()
            raise ExecutionError(
                f"{definition.verb} '{definition.name}': an executor of the release before cannot; "
                "nothing was done; try again when all are replaced"
            )
        return _Defined(stream, self._tables, definition)

    async def ask(self, question: StatementQuestion[Answer]) -> Answer:
        """See `Dispatch.ask`."""
        if isinstance(question, WriteQuestion):
            if (write := self._tables.write_of(question.statement)) is not None:
                return cast(Answer, write)
        planned = await self._tables.planned(question.statement)
        return await self._inner.ask(replace(question, statement=planned))


class _Defined(WrappedStream):
    """The answer to a statement, which comes once its table is listed."""

    is_at_end = False

    def __init__(
        self, stream: BatchStream, tables: DefinedTables, definition: TableDefinition
    ) -> None:
        super().__init__(stream)
        self._tables = tables
        self._definition: TableDefinition | None = definition

    async def __anext__(self) -> pa.RecordBatch:
        batch = await super().__anext__()
        if self._definition is not None:
            definition, self._definition = self._definition, None
            await self._tables.note(definition)
        return batch
