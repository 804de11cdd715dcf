"""Puts the bodies of the manifest's functions into statements, before anything plans them."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from caraway_core.errors import InvalidQueryError
from caraway_core.ids import QueryId, TableName
from caraway_core.manifest import Manifest
from caraway_core.protocols.dispatch import BatchStream, Dispatch
from caraway_core.sqltext.expanding import ExpandedSql, Expander
from caraway_core.sqltext.sql_functions import SqlFunction
from caraway_core.statements import Statement
from caraway_core.statements.questions import Answer, SqlQuestion, StatementQuestion
from caraway_scheduler.dispatch.wrappers.wrapping import WrappedDispatch

_SHORT = 8 * 1024
_QUICK = 32 * 1024
"""Longer texts are read in a thread, and calls that add more are expanded there, so that other
requests are answered meanwhile.
"""


class ManifestFunctions:
    """The functions of the manifest that is served."""

    def __init__(self) -> None:
        self.expander = Expander()
        self.texts: Mapping[TableName, str] = {}
        """The bodies of functions that read tables; another mapping after each change."""

    def apply(self, manifest: Manifest) -> bool:
        """Take the functions of a manifest; return whether any changed."""
        found = {each.name: each for each in manifest.functions}
        if found == self.expander.functions:
            return False
        self.expander = Expander(manifest.functions)
        self.texts = {
            TableName(each.name): each.body for each in manifest.functions if each.is_table
        }
        return True

    @property
    def declared(self) -> Sequence[SqlFunction]:
        """The functions, in the order of the manifest."""
        return tuple(self.expander.functions.values())


class FunctionDispatch(WrappedDispatch):
    """A dispatch whose statements may call the functions of the manifest."""

    def __init__(self, inner: Dispatch, functions: ManifestFunctions) -> None:
        super().__init__(inner)
        self._functions = functions

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Plan a statement and start it.

        Raises:
            QueryError: a call is wrong, or it cannot be planned or started.
        """
        expanded_sql = await self._expanded(statement.sql)
        if not expanded_sql.called:
            return await self._inner.execute(query_id, statement)
        try:
            return await self._inner.execute(query_id, replace(statement, sql=expanded_sql.sql))
        except InvalidQueryError as exc:
            raise _explained(exc, expanded_sql) from None

    async def ask(self, question: StatementQuestion[Answer]) -> Answer:
        """See `Dispatch.ask`. A plan calls no functions of the manifest."""
        if not isinstance(question, SqlQuestion):
            statement = await self._with_bodies(question.statement)
            question = replace(question, statement=statement)
        return await self._inner.ask(question)

    async def _with_bodies(self, statement: Statement) -> Statement:
        expanded_sql = await self._expanded(statement.sql)
        return replace(statement, sql=expanded_sql.sql) if expanded_sql.called else statement

    async def _expanded(self, sql: str) -> ExpandedSql:
        expander = self._functions.expander
        if not expander:
            return ExpandedSql(sql)
        if len(sql) <= _SHORT:
            with contextlib.suppress(InvalidQueryError):
                return expander.expanded(sql, _QUICK)
        return await asyncio.to_thread(expander.expanded, sql)


def _explained(exc: InvalidQueryError, expanded_sql: ExpandedSql) -> InvalidQueryError:
    """Say in a message which bodies are a part of the statement that it is about."""
    names = ", ".join(sorted(expanded_sql.called))
    exc.message += f" (the bodies of {names} are in the place of their calls)"
    exc.args = (exc.message,)
    return exc
