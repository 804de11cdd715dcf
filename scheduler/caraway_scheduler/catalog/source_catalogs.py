"""Keeps the source catalogs of the manifest: lists their tables, and describes those in use."""

import asyncio
import difflib
import logging
import random
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Protocol

from caraway_core.concurrency import backoff, tasks
from caraway_core.errors import (
    DatasetError,
    DatasetLoadingError,
    InvalidQueryError,
    QueryError,
    TableNotFoundError,
)
from caraway_core.ids import TableName
from caraway_core.loading import registry
from caraway_core.manifest import DeclaredCatalog
from caraway_core.protocols.catalog_sources import ListedTable
from caraway_core.sqltext import mentions
from caraway_core.statements import all_tables_of
from caraway_core.tables import RemoteTable, TableSpec
from caraway_scheduler.catalog import polling
from caraway_scheduler.catalog.catalog_calls import CatalogCalls
from caraway_scheduler.catalog.source_catalog_states import SourceCatalogState

logger = logging.getLogger(__name__)
_DELAYS = backoff.USUAL
_WAIT_S = 15.0
"""The longest wait of a statement for the first list of a catalog."""
_LIST_AGAIN_S = 1.0
"""Unknown names have a list read again, but not more often."""
_RETRY_AFTER_S = 2
_MOST_AT_ONCE = 64
"""The most tables that one statement has described because of its text."""


class InstalledTables(Protocol):
    """The tables that statements use; the catalog implements it."""

    @property
    def failures(self) -> Mapping[TableName, str]:
        """Why tables could not be installed."""
        ...

    async def install(self) -> None:
        """Install the known tables, so that new statements use them."""
        ...


class SourceCatalogs:
    """The source catalogs of one runtime, by name. One event loop uses it."""

    def __init__(
        self,
        calls: CatalogCalls,
        owned: tasks.Tasks,
        installed: InstalledTables,
    ) -> None:
        """Take what owns the background tasks, and what installs tables."""
        self.states: dict[str, SourceCatalogState] = {}
        self._calls = calls
        self._owned = owned
        self._installed = installed
        self._keeping: dict[str, asyncio.Task[None]] = {}
        self._views: tuple[str, ...] = ()

    @property
    def writable(self) -> frozenset[TableName]:
        """The catalogs whose tables accept writes, in the form of `Statement.writable`."""
        return frozenset(
            all_tables_of(name)
            for name, state in self.states.items()
            if state.declared.access != "read"
        )

    @property
    def tables(self) -> Mapping[TableName, TableSpec]:
        """The described tables of all catalogs."""
        return {
            name: spec for state in self.states.values() for name, spec in state.described.items()
        }

    def apply(self, declared: Collection[DeclaredCatalog], views: Iterable[str]) -> bool:
        """Take the catalogs of a manifest, and the SQL of its views.

        Returns whether tables left that were described.
        """
        self._views = tuple(views)
        wanted = {each.name: each for each in declared}
        has_left = False
        for name, state in list(self.states.items()):
            if wanted.get(name) != state.declared:
                has_left |= bool(state.described)
                del self.states[name]
                state.settled.set()
                self._keeping.pop(name).cancel()
        for name, each in wanted.items():
            if name not in self.states:
                self._begin(each)
            else:
                self.states[name].stale.set()  # New views may read more of it.
        return has_left

    def find(self, table: TableName) -> SourceCatalogState | None:
        """Return the catalog that a name of three parts belongs to."""
        catalog, _, rest = table.partition(".")
        return self.states.get(catalog) if "." in rest else None

    async def load(
        self, missing: TableName, sql: str, readable: Collection[TableName] | None = None
    ) -> bool:
        """Describe a table that a statement did not find, and others that its text names.

        Returns whether the statement may find it now. `readable` limits the names.

        Raises:
            TableNotFoundError: its catalog has no such table; the message names the nearest one.
            DatasetLoadingError: its catalog or its source is away.
        """
        state = self.find(missing)
        if state is None or (readable is not None and missing not in readable):
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_S):
                await state.settled.wait()
        if missing not in state.listed:
            await self._list_again(state)
        if missing not in state.listed:
            raise await self._unknown(missing, state)
        await self._describe(missing)
        named = await asyncio.to_thread(mentions.of_catalogs, sql, frozenset(self.states))
        others = [each for each in named if readable is None or each in readable]
        await self._describe_some(others[:_MOST_AT_ONCE])
        await self._installed.install()
        if (failure := self._installed.failures.get(missing)) is not None:
            raise _away(f"table '{missing}' cannot be read: {failure}")
        return missing in state.described

    async def renew(self, state: SourceCatalogState) -> None:
        """List a catalog now, as a statement creates or has created a table there.

        Raises:
            DatasetLoadingError: it is away.
        """
        try:
            await self._list(state)
        except DatasetError as exc:
            state.fail(exc)
            state.stale.set()
            raise _away(f"catalog '{state.name}' cannot be listed: {exc.message}") from exc

    def described(self, name: TableName) -> TableSpec | None:
        """Return a described table, if it is one."""
        state = self.find(name)
        return state.described.get(name) if state is not None else None

    async def describe_again(self, name: TableName) -> None:
        """Describe a table that is in use again, as a statement has written to it.

        Raises:
            DatasetError: it cannot be read.
        """
        state = self.find(name)
        if state is None or name not in state.described or name not in state.listed:
            return
        state.described[name] = await self._calls.resolve(state.declared, state.listed[name])
        await self._installed.install()

    async def place(self, state: SourceCatalogState, table: ListedTable) -> RemoteTable:
        """Return where a table is or will be.

        Raises:
            InvalidQueryError: there can be no such table.
        """
        try:
            return await self._calls.place(state.declared, table)
        except DatasetError as exc:
            raise InvalidQueryError(f"catalog '{state.name}': {exc.message}") from exc

    def stop(self) -> None:
        """Mark all as stopped; the owner of the tasks ends them."""
        for state in self.states.values():
            state.status = "shuttingdown"

    def _begin(self, declared: DeclaredCatalog) -> None:
        state = self.states[declared.name] = SourceCatalogState(declared)
        self._keeping[declared.name] = self._owned.keep(
            lambda: self._keep(state), "keep a catalog", catalog=declared.name
        )

    async def _keep(self, state: SourceCatalogState) -> None:
        """List a catalog, retry while that fails, and list it again when it may have changed."""
        usual_s = registry.catalog_connector(state.declared.connector).poll_s
        while True:
            state.stale.clear()
            began_s = time.monotonic()
            try:
                await self._list(state)
            except DatasetError as exc:
                state.fail(exc)
            finally:
                state.settled.set()
            if state.error is not None:
                wait_s = _DELAYS.delay_s(state.attempts, random.random())
            else:
                wait_s = polling.period_s(usual_s, time.monotonic() - began_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await state.stale.wait()

    async def _list(self, state: SourceCatalogState) -> None:
        """Read the list again, and let go of tables that are gone or have other columns."""
        async with state.listing:
            fingerprint = await self._calls.fingerprint(state.declared)
            if fingerprint is None or fingerprint != state.fingerprint:
                has_left = state.take_list(
                    await self._calls.tables(state.declared, state.titles), fingerprint
                )
            else:
                has_left = False
                state.succeed()
            # Before others are let go: a view is never planned without a table that is there.
            if await self._describe_of_views(state) or has_left:
                await self._installed.install()

    async def _list_again(self, state: SourceCatalogState) -> None:
        """List a catalog for a name that is not in its list, unless that was just done."""
        if time.monotonic() - state.asked_s < _LIST_AGAIN_S:
            return
        state.asked_s = time.monotonic()
        try:
            await self._list(state)
        except DatasetError as exc:
            state.fail(exc)
            state.stale.set()

    async def _unknown(self, missing: TableName, state: SourceCatalogState) -> QueryError:
        if not state.settled.is_set():
            return _away(f"catalog '{state.name}' is still being listed; try again")
        if state.error is not None:
            return _away(f"table '{missing}' cannot be read: {state.error.message}; try again")
        # Among 100,000 names this takes long.
        hint = await asyncio.to_thread(name_hint, missing, tuple(state.listed))
        return TableNotFoundError(f"table '{missing}' not found{hint}", missing)

    async def _describe_of_views(self, state: SourceCatalogState) -> bool:
        """Describe the tables that views name; returns whether there are new ones."""
        catalogs = frozenset({state.name})
        named = {each for sql in self._views for each in mentions.of_catalogs(sql, catalogs)}
        state.kept = frozenset(named)
        missing = [each for each in named if each in state.listed and each not in state.described]
        await self._describe_some(missing)
        return any(each in state.described for each in missing)

    async def _describe_some(self, names: Iterable[TableName]) -> None:
        """Describe tables at once; those that fail are described alone when they are missing."""
        found = await asyncio.gather(*map(self._describe, names), return_exceptions=True)
        for exc in found:
            if isinstance(exc, BaseException) and not isinstance(exc, DatasetLoadingError):
                raise exc

    async def _describe(self, name: TableName) -> None:
        """Describe a table once, although several statements ask for it.

        Raises:
            DatasetLoadingError: it cannot be read.
        """
        state = self.find(name)
        if state is None or (listed := state.listed.get(name)) is None:
            return
        async with state.describing(name):
            if name in state.described:
                return
            try:
                spec = await self._calls.resolve(state.declared, listed)
            except DatasetError as exc:
                if exc.type == "not_found":
                    state.listed.pop(name, None)
                    return
                raise _away(f"table '{name}' cannot be read: {exc.message}") from exc
            if state.listed.get(name) == listed:
                state.describe(name, spec)


def _away(message: str) -> DatasetLoadingError:
    return DatasetLoadingError(message, _RETRY_AFTER_S)


def name_hint(table: TableName, known: Collection[TableName]) -> str:
    """Return what to add to an error about an unknown name of three parts."""
    catalog, schema, bare = table.split(".", 2)
    if not known:
        return f"; catalog '{catalog}' has no tables"
    schemas = {each.split(".")[1] for each in known}
    if schema not in schemas:
        near = difflib.get_close_matches(schema, schemas, n=1)
        is_meant = f"; did you mean '{near[0]}'?" if near else ""
        return f": catalog '{catalog}' has no schema '{schema}'{is_meant}"
    tables = [each.split(".")[2] for each in known if each.split(".")[1] == schema]
    lower = {each.lower(): each for each in tables}
    near = difflib.get_close_matches(bare.lower(), lower, n=1)
    if not near:
        return f": schema '{catalog}.{schema}' has no table of this name"
    found = lower[near[0]]
    quotes = " Names with capitals need double quotes." if found != found.lower() else ""
    return f"; did you mean '{catalog}.{schema}.{found}'?{quotes}"
