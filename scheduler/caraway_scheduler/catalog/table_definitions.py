"""Statements that create or drop tables of source catalogs: who may, where, and what is listed."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from caraway_core.errors import (
    CarawayError,
    InvalidQueryError,
    QueryForbiddenError,
    TableNotFoundError,
)
from caraway_core.ids import TableName
from caraway_core.manifest.texts import names
from caraway_core.protocols.catalog_sources import ListedTable
from caraway_core.sqltext import table_statements
from caraway_core.sqltext.table_statements import CreateTable, DropTable
from caraway_core.statements import DEFINITION, Statement, TableWrite, all_tables_of
from caraway_core.statements.definitions import TableDefinition
from caraway_core.tables import RemoteTable
from caraway_scheduler.catalog.source_catalog_states import SourceCatalogState

logger = logging.getLogger(__name__)
_NO_ROWS = "SELECT arrow_cast(0, 'UInt64') AS count"
_PARTS = 3
_Asked = CreateTable | DropTable


class CreatingCatalogs(Protocol):
    """The source catalogs; see `SourceCatalogs`."""

    @property
    def states(self) -> Mapping[str, SourceCatalogState]: ...

    async def renew(self, state: SourceCatalogState) -> None: ...

    async def place(self, state: SourceCatalogState, table: ListedTable) -> RemoteTable: ...


class TableDefinitions:
    """Turns statements that create or drop tables into those that dispatches run."""

    def __init__(self, catalogs: CreatingCatalogs) -> None:
        self._catalogs = catalogs

    def write_of(self, statement: Statement) -> TableWrite | None:
        """Return what a statement creates or drops; None for others. Checks no permissions.

        Raises:
            InvalidQueryError: it says more than a table can have here.
        """
        asked = self._asked(statement)
        return TableWrite(_named(asked), DEFINITION) if asked is not None else None

    async def planned(self, statement: Statement) -> Statement:
        """Return the statement to run, with its definition; others as they are.

        Raises:
            QueryError: it may not create or drop the table, or there is no such table.
        """
        asked = self._asked(statement)
        if asked is None:
            return statement
        name, state = _named(asked), self._catalogs.states[asked.name[0]]
        verb = _check_rights(asked, state, statement)
        table = ListedTable(*asked.name[1:])
        if not names.is_writable(table.schema) or not names.is_writable(table.name):
            raise InvalidQueryError(
                f"{verb}: names of tables and schemas hold no dots, slashes or quotes"
            )
        if not state.declared.includes(table.title):
            raise QueryForbiddenError(
                f"{verb} is refused: 'include' of catalog '{state.name}' leaves out {table.title}"
            )
        await self._catalogs.renew(state)
        is_there = name in state.listed
        if isinstance(asked, DropTable) and not is_there and not asked.may_lack:
            raise TableNotFoundError(f"table '{name}' not found", name)
        if isinstance(asked, CreateTable) and is_there and not asked.may_exist:
            raise InvalidQueryError(
                f"{verb}: a table or view '{name}' is there; nothing is created"
            )
        if is_there == isinstance(asked, CreateTable):
            return replace(statement, sql=_NO_ROWS, parameters={}, offer=None)
        place = await self._catalogs.place(state, table)
        if isinstance(asked, DropTable):
            definition = TableDefinition(name, place, is_dropped=True)
            return replace(statement, sql=_NO_ROWS, offer=None, defines=definition)
        definition = TableDefinition(
            name, place, required=asked.required, primary_key=asked.primary_key
        )
        return replace(statement, sql=asked.query, offer=None, defines=definition)

    async def note(self, definition: TableDefinition) -> None:
        """Have the catalog list what a statement has created or dropped."""
        state = self._catalogs.states.get(definition.name.partition(".")[0])
        if state is None:
            return
        try:
            await self._catalogs.renew(state)
        except CarawayError as exc:
            logger.warning(
                "a catalog could not be listed after a table was created or dropped",
                extra={"table": definition.name, "cause": exc.message},
            )

    def _asked(self, statement: Statement) -> _Asked | None:
        """Return what a statement asks for in a source catalog."""
        if statement.defines is not None or statement.given is not None:
            return None
        asked = table_statements.parse(statement.sql)
        if asked is None or len(asked.name) != _PARTS or asked.name[0] not in self._catalogs.states:
            return None
        return asked


def _named(asked: _Asked) -> TableName:
    return TableName(".".join(asked.name))


def _check_rights(asked: _Asked, state: SourceCatalogState, statement: Statement) -> str:
    """Return the verb of a statement that may run.

    Raises:
        QueryForbiddenError: it may not.
    """
    verb = "DROP TABLE" if isinstance(asked, DropTable) else "CREATE TABLE"
    if not statement.may_write:
        raise QueryForbiddenError(
            f"{verb} is refused: this key may only read; writing needs a key that ends in :rw"
        )
    is_writable = all_tables_of(state.name) in statement.writable
    if state.declared.access != "read_write_create" or not is_writable:
        raise QueryForbiddenError(
            f"{verb} is refused: tables of catalog '{state.name}' are not created or dropped; "
            "give it `access: read_write_create` in the manifest"
        )
    if statement.readable is not None and _named(asked) not in statement.readable:
        raise QueryForbiddenError(
            f"{verb} is refused: the statement is limited to the datasets that were named for it"
        )
    return verb
