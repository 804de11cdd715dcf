"""Has tables of source catalogs described when a statement names them."""

from collections.abc import Awaitable, Callable, Collection
from typing import Protocol, TypeVar

from caraway_core.errors import TableNotFoundError
from caraway_core.ids import QueryId, TableName
from caraway_core.protocols.dispatch import BatchStream, Dispatch
from caraway_core.statements import Statement
from caraway_core.statements.questions import Answer, StatementQuestion
from caraway_scheduler.dispatch.wrappers.wrapping import WrappedDispatch

_Result = TypeVar("_Result")
_MOST_ROUNDS = 64
"""The number of times that a statement is planned again for names that its text hides."""


class CatalogTables(Protocol):
    """The tables of source catalogs."""

    async def load(
        self, missing: TableName, sql: str, readable: Collection[TableName] | None
    ) -> bool:
        """Describe a table that a statement did not find; returns whether it may find it now."""


class DescribingDispatch(WrappedDispatch):
    """A dispatch whose statements may name tables of source catalogs."""

    def __init__(self, inner: Dispatch, tables: CatalogTables) -> None:
        super().__init__(inner)
        self._tables = tables

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Plan a statement and start it.

        Raises:
            QueryError: it cannot be planned or started.
        """
        return await self._found(statement, lambda: self._inner.execute(query_id, statement))

    async def ask(self, question: StatementQuestion[Answer]) -> Answer:
        """See `Dispatch.ask`."""
        return await self._found(question.statement, lambda: self._inner.ask(question))

    async def _found(self, statement: Statement, plan: Callable[[], Awaitable[_Result]]) -> _Result:
        """Plan a statement again as long as it names tables that can be described.

        One that names its catalog snapshot reads no others.
        """
        tried = set[TableName]()
        while True:
            try:
                return await plan()
            except TableNotFoundError as exc:
                is_bound = statement.catalog_version is not None
                if is_bound or exc.table in tried or len(tried) >= _MOST_ROUNDS:
                    raise
                tried.add(exc.table)
                if not await self._tables.load(exc.table, statement.sql, statement.readable):
                    raise
