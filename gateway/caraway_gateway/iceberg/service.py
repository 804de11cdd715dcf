"""Loads datasets and views as tables of Iceberg."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from caraway_core.concurrency import tasks
from caraway_core.errors import (
    DatasetError,
    InvalidRequestError,
    UnavailableError,
)
from caraway_core.ids import TableName, new_query_id
from caraway_core.manifest import Dataset, View
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.statements import Statement
from caraway_core.tables import ResultPlace, TableSpec
from caraway_gateway.iceberg import (
    exporting,
    histories,
    planning,
    publishing,
    states,
)
from caraway_gateway.iceberg.access import AccessSettings, TableAccess
from caraway_gateway.iceberg.delegation import SignRequest
from caraway_gateway.iceberg.histories import Listing
from caraway_gateway.iceberg.keeping import HeldTable, LoadedTables, TablePlan
from caraway_gateway.iceberg.loaded_tables import LoadedTable, TableState, TableTitle
from caraway_gateway.iceberg.plan_pages import FOLDER, PlanOwner
from caraway_gateway.iceberg.planning import ScanRequest
from caraway_gateway.iceberg.scan_plans import ScanPlans
from caraway_gateway.iceberg.scan_runs import ScanExport
from caraway_gateway.iceberg.sweeping import StateSweeper
from caraway_plugins.iceberg import written_types
from caraway_plugins.iceberg.column_types import NoIcebergTypeError
from caraway_plugins.stores import published
from caraway_plugins.stores.published import Published
from caraway_scheduler.catalog.catalog import Catalog
from caraway_scheduler.catalog.states import DatasetState
from caraway_serving.access import Principal

LAG_S = 60.0
"""Time for which an export is served although the rows have changed."""
_SWEEP_S = 600.0
_IN_SQL = "read it by SQL, or let the server plan the scan"
Shown = Callable[[TableName], tuple[str, str, int] | None]
"""Returns the key of the state of an accelerated dataset, and when its base was made.

None: it has no rows yet.
"""


NO_ACCESS = AccessSettings()


class NotIcebergError(InvalidRequestError):
    """A table that exists, and that Iceberg cannot have."""


class IcebergTables:
    """The tables of the catalog as Iceberg clients load them.

    `place` returns the place for metadata and exports; it is asked once it is needed.
    """

    def __init__(
        self,
        catalog: Catalog,
        dispatch: Dispatch,
        place: Callable[[], ResultPlace],
        shown: Shown = lambda _name: None,
        kept_s: float = 3600.0,
        access: AccessSettings = NO_ACCESS,
    ) -> None:
        self._catalog = catalog
        self._dispatch = dispatch
        self._place = place
        self._shown = shown
        self._listing = Listing(kept_s)
        self.access = TableAccess(access)
        self._published: Published | None = None
        self._began_ms = int(time.time() * 1000)
        self._loaded = LoadedTables()
        self._current: dict[str, LoadedTable] = {}
        self._exported: dict[str, TableName] = {}
        self._sweeper = StateSweeper()
        self.plans = ScanPlans(dispatch)
        self._sweeping: asyncio.Task[None] | None = None
        self._tasks = tasks.Tasks()
        # One at a time: footers of thousands of files keep a core busy that requests need.
        self._publishing = asyncio.Lock()

    @property
    def datasets(self) -> list[TableName]:
        """The names of the datasets of the manifest, except those that it disables."""
        found = self._catalog.datasets.items()
        return [name for name, state in found if state.status != "disabled"]

    @property
    def views(self) -> list[TableName]:
        """The names of the views of the manifest."""
        return list(self._catalog.views)

    async def load(self, name: TableName, accepted: Iterable[str] = ()) -> bytes:
        """Return the answer for a table or view that exists.

        `accepted` are the ways in which the client takes access to its files.

        Raises:
            UnavailableError: it is loading or in error.
            NotIcebergError: Iceberg has no form for it.
            CarawayError: its files, or the place for metadata, cannot be used.
        """
        self._loaded.retain((*self._catalog.datasets, *self._catalog.views))
        held_table = await self._held(name)
        mode = self.access.chosen(accepted)
        if mode is None:
            return held_table.answer()
        place = await self._opened()
        return await self.access.answer(name, held_table, mode, place, self._place().store)

    async def credentials(self, name: TableName) -> list[dict[str, Any]]:
        """Return temporary credentials for the files of a table or view that exists.

        Raises:
            QueryForbiddenError: the manifest allows none.
            CarawayError: the table cannot be loaded, or there are no credentials now.
        """
        table, place = (await self._held(name)).table, await self._opened()
        return await self.access.credentials(table, place, self._place().store)

    async def sign(
        self, name: TableName, request: SignRequest, principal: Principal
    ) -> dict[str, object]:
        """Sign a request that reads a file of a table or view that exists.

        Raises:
            QueryForbiddenError: the request is for another file, or the manifest allows none.
            CarawayError: the table cannot be loaded.
        """
        table = self._loaded.last(name) or (await self._held(name)).table
        place, own = await self._opened(), self._place().store
        return await self.access.sign(request, name, table, principal.id, place, own)

    async def plan(
        self, name: TableName, request: ScanRequest, principal: Principal, *, may_wait: bool = False
    ) -> dict[str, Any]:
        """Plan a scan of a table or view that exists, and return the answer.

        With `may_wait`, the client asks again for a plan that is not complete.

        Raises:
            InvalidRequestError: the request names a column that the table lacks.
            OverloadedError: too many scans are being planned.
            CarawayError: its rows cannot be read, or not be written.
        """
        place = await self._opened()
        self._begin_sweeping()
        owner = PlanOwner(principal.id, name, request.filter)
        table = await self._with_files(name, request.snapshot_id)
        if table is not None:
            key = table.key_of(request.snapshot_id)
            found = await asyncio.to_thread(publishing.scan_tasks, table, key, place)
            # The protocol has no form for partitions of NULL in tasks: PyIceberg refuses them.
            if not any(None in each["data-file"]["partition"] for each in found):
                owner = replace(owner, tasks=publishing.tasks_file(table, key))
                return await self.plans.listed(found, place, owner)
            if key != table.key:
                raise InvalidRequestError(
                    f"scans of snapshot {request.snapshot_id} cannot be planned, because "
                    "partitions are NULL; plan them from the metadata of the table"
                )
        statement = Statement(
            planning.sql(name, await self.columns(name), request),
            {},
            in_background=True,
            viewer=principal.viewer,
        )
        export = ScanExport(statement, self._place(), place, owner)
        return await self.plans.export(export, may_wait=may_wait)

    async def plan_place(self) -> Published:
        """Return the place where plans are.

        Raises:
            CarawayError: it cannot be used.
        """
        return await self._opened()

    async def _held(self, name: TableName) -> HeldTable:
        """Load a table, and look which of its snapshots can be read still."""
        held_table = await self._loaded.get(name, self._plan(name))
        until_ms = held_table.table.listed_until_ms
        if until_ms is not None and until_ms <= histories.now_ms():
            place = await self._opened()
            async with self._publishing:
                held_table.renew(
                    await asyncio.to_thread(
                        publishing.looked_at_again, held_table.table, place, self._listing
                    )
                )
        return held_table

    async def _with_files(self, name: TableName, snapshot_id: int | None) -> LoadedTable | None:
        """Return a table whose files a scan reads; None where its rows have to be exported."""
        state = self._catalog.datasets.get(name)
        if snapshot_id is None and (state is None or _files(state) is None):
            return None
        table = (await self._held(name)).table
        return table if table.key_of(snapshot_id) else None

    async def load_view(self, name: TableName) -> bytes:
        """Return the answer for a view that exists.

        Raises:
            NotIcebergError: Iceberg has no type for one of its columns.
            CarawayError: it cannot be read now.
        """
        view = self._catalog.views[name].view
        title = _title(name, view, view.sql)
        columns = await self.columns(name)
        try:
            return publishing.view(title, columns, view.sql, self._began_ms)
        except NoIcebergTypeError as exc:
            raise _refused(title, exc) from exc

    async def columns(self, name: TableName) -> pa.Schema:
        """Return the columns that SQL has for a table or view, with types that Iceberg has.

        Raises:
            QueryError: the table cannot be read now.
        """
        statement = Statement(f"{exporting.all_rows(name)} LIMIT 0", {})
        stream = await self._dispatch.execute(new_query_id(), statement)
        try:
            return written_types.columns(stream.schema)
        finally:
            await stream.aclose()

    async def aclose(self) -> None:
        """Stop loading tables."""
        await self.plans.aclose()
        await self._loaded.aclose()
        await self._tasks.aclose()

    def _plan(self, name: TableName) -> TablePlan:
        state = self._catalog.datasets.get(name)
        if state is None:
            view = self._catalog.views[name].view
            title = _title(name, view, view.sql)
            reason = f"'{name}' is a view; {_IN_SQL}"
            basis = view, self._catalog.version
            return TablePlan(basis, lambda: self._columns_only(name, title, reason))
        title = _title(name, state.dataset, state.dataset.source)
        table = _files(state)
        if table is not None:
            return TablePlan((table, state.dataset), lambda: self._in_place(title, name, table))
        shown = self._shown(name) if state.is_accelerated else None
        if (shown if state.is_accelerated else state.spec) is None:
            raise _unready(state)
        if shown is not None:
            return TablePlan(
                (state.dataset, shown), lambda: self._export(title, name, shown), LAG_S
            )
        reason = (
            f"its rows are read from '{state.dataset.connector}' in another form than Parquet "
            f"files; accelerate it, or {_IN_SQL}"
        )
        return TablePlan(
            (state.spec, state.dataset), lambda: self._columns_only(name, title, reason)
        )

    async def _in_place(self, title: TableTitle, name: TableName, table: TableSpec) -> LoadedTable:
        """Load a table over the files that a dataset has, if every engine reads them as we do."""
        try:
            return await self._from_files(title, table)
        except NoIcebergTypeError as exc:
            reason = f"its files cannot be read where they are: {exc}; accelerate it, or {_IN_SQL}"
        return await self._columns_only(name, title, reason)

    async def _from_files(
        self, title: TableTitle, table: TableSpec, at: TableState | None = None
    ) -> LoadedTable:
        place = await self._opened()
        async with self._publishing:
            try:
                loaded = await asyncio.to_thread(
                    publishing.files, title, table, place, self._listing, at
                )
            except DatasetError as exc:
                raise UnavailableError(f"'{title.name}': {exc.message}") from exc
        return self._serving(title, loaded)

    async def _export(
        self, title: TableTitle, name: TableName, shown: tuple[str, str, int]
    ) -> LoadedTable:
        """Export the rows of an accelerated dataset, unless the place has this state of them."""
        key = _key(title.uuid, shown)
        place, at = await self._opened(), self._place()
        self._exported[title.uuid] = name
        async with self._publishing:
            table = await asyncio.to_thread(
                publishing.known, title, key, place, self._listing, at.store
            )
        if table is not None:
            return self._serving(title, table)
        statement = Statement(exporting.all_rows(name), {}, in_background=True)
        folder = states.home(title.uuid, key)
        columns = await self.columns(name)
        try:
            await asyncio.to_thread(publishing.begin_copy, title, columns, place, key)
        except NoIcebergTypeError as exc:
            raise _refused(title, exc) from exc
        rows = await exporting.export(self._dispatch, statement, at, folder, is_table=True)
        return await self._from_files(title, rows.table(), TableState(key, shown[2]))

    def _serving(self, title: TableTitle, loaded: LoadedTable) -> LoadedTable:
        """Record the served state of a table, so that the state before is deleted later."""
        self._begin_sweeping()
        self._current[title.uuid] = loaded
        return loaded

    def _begin_sweeping(self) -> None:
        if self._sweeping is None:
            self._sweeping = self._tasks.keep(self._sweep_forever, "delete old states of tables")

    async def _sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            await self.sweep()

    async def sweep(self) -> None:
        """Delete published files of states that no snapshot has any more.

        Raises:
            CarawayError: the place cannot be used.
        """
        place = await self._opened()
        await asyncio.to_thread(self._sweeper.sweep, place, FOLDER)
        for uuid, loaded in list(self._current.items()):
            name = self._exported.get(uuid)
            shown = None if name is None else self._shown(name)
            is_current = name is None or (shown is not None and _key(uuid, shown) == loaded.key)
            async with self._publishing:
                used = await asyncio.to_thread(
                    publishing.used, uuid, loaded, place, self._listing, is_current=is_current
                )
            await asyncio.to_thread(self._sweeper.sweep, place, uuid, used)

    async def _columns_only(self, name: TableName, title: TableTitle, reason: str) -> LoadedTable:
        columns = await self.columns(name)
        try:
            return publishing.columns_only(title, columns, reason, self._began_ms)
        except NoIcebergTypeError as exc:
            raise _refused(title, exc) from exc

    async def _opened(self) -> Published:
        if self._published is None:
            self._published = await asyncio.to_thread(published.opened, self._place())
        return self._published


def _key(uuid: str, shown: tuple[str, str, int]) -> str:
    """Return the key of a state of an accelerated dataset."""
    return hashlib.sha256("\0".join((uuid, *shown[:2])).encode()).hexdigest()


def _files(state: DatasetState) -> TableSpec | None:
    """Return the table of a dataset whose rows are in Parquet files."""
    spec = state.spec
    return spec if spec is not None and spec.is_parquet and not state.is_accelerated else None


def _unready(state: DatasetState) -> UnavailableError:
    if state.error is None:
        return UnavailableError(f"dataset '{state.name}' is still loading; try again")
    return UnavailableError(f"dataset '{state.name}' is in the error state: {state.error.message}")


def _refused(title: TableTitle, exc: NoIcebergTypeError) -> NotIcebergError:
    return NotIcebergError(
        f"'{title.name}' cannot be a table of Iceberg: {exc}; read it by SQL, or define a view "
        "that casts or leaves out these columns"
    )


def _title(name: TableName, named: Dataset | View, origin: str) -> TableTitle:
    docs = {each.name: each.description for each in named.columns if each.description}
    return TableTitle(name, origin, named.description or "", docs)
