"""Loads datasets and views as tables of Iceberg, and keeps what was loaded until it changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from caraway_core import tasks
from caraway_core.errors import DatasetError, InvalidRequestError, UnavailableError
from caraway_core.ids import TableName, new_query_id
from caraway_core.manifest import Dataset, View
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.statements import Statement
from caraway_core.tables import FilesTable
from caraway_plugins.iceberg import written_types
from caraway_plugins.iceberg.column_types import NoIcebergTypeError
from caraway_plugins.stores.published import Published
from caraway_scheduler.catalog.catalog import Catalog
from caraway_scheduler.catalog.states import DatasetState
from caraway_scheduler.iceberg import publishing
from caraway_scheduler.iceberg.publishing import LoadedTable, TableTitle

_IN_SQL = "read it by SQL, or by planning on the server"


class NotIcebergError(InvalidRequestError):
    """A table that exists, and that Iceberg cannot have."""


@dataclass(slots=True)
class _Kept:
    """What was made of a table. It holds as long as its `basis` is the same."""

    basis: tuple[Any, ...]
    work: asyncio.Task[LoadedTable]
    answer: bytes = field(default=b"", repr=False)


class IcebergTables:
    """The tables of the catalog as Iceberg clients load them.

    `place` opens the place for metadata, which blocks; it is called once it is needed.
    """

    def __init__(
        self, catalog: Catalog, dispatch: Dispatch, place: Callable[[], Published]
    ) -> None:
        self._catalog = catalog
        self._dispatch = dispatch
        self._open = place
        self._place: Published | None = None
        self._began_ms = int(time.time() * 1000)
        self._kept: dict[TableName, _Kept] = {}
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

    async def load(self, name: TableName) -> bytes:
        """Return the answer for a table or view that exists.

        Raises:
            UnavailableError: it is loading or in error.
            NotIcebergError: Iceberg has no form for it.
            CarawayError: its files, or the place for metadata, cannot be used.
        """
        basis, make = self._plan(name)
        kept = self._kept.get(name)
        if kept is None or not _same(kept.basis, basis) or _has_failed(kept.work):
            kept = self._kept[name] = _Kept(basis, tasks.begin(make(), "load an Iceberg table"))
            self._forget()
        loaded = await asyncio.shield(kept.work)
        if not kept.answer:
            kept.answer = loaded.document()
        return kept.answer

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
        quoted = ".".join(f'"{part}"' for part in name.split("."))
        statement = Statement(f"SELECT * FROM {quoted} LIMIT 0", {})
        stream = await self._dispatch.execute(new_query_id(), statement)
        try:
            return written_types.columns(stream.schema)
        finally:
            await stream.aclose()

    async def aclose(self) -> None:
        """Stop what is being loaded."""
        for kept in self._kept.values():
            kept.work.cancel()
        await asyncio.sleep(0)

    def _plan(
        self, name: TableName
    ) -> tuple[tuple[Any, ...], Callable[[], Coroutine[Any, Any, LoadedTable]]]:
        """Return what a table depends on, and what makes it."""
        state = self._catalog.datasets.get(name)
        if state is None:
            view = self._catalog.views[name].view
            title = _title(name, view, view.sql)
            reason = f"'{name}' is a view; {_IN_SQL}"
            return (view, self._catalog.version), lambda: self._columns_only(name, title, reason)
        title = _title(name, state.dataset, state.dataset.source)
        table = _files(state)
        if table is not None:
            return (table, state.dataset), lambda: self._published(title, table)
        _check(state)
        reason = f"its rows are {_whereabouts(state)}; {_IN_SQL}"
        basis = (state.spec, state.version and state.version.schema, state.dataset)
        return basis, lambda: self._columns_only(name, title, reason)

    async def _published(self, title: TableTitle, table: FilesTable) -> LoadedTable:
        async with self._publishing:
            try:
                if self._place is None:
                    self._place = await asyncio.to_thread(self._open)
                return await asyncio.to_thread(publishing.files, title, table, self._place)
            except NoIcebergTypeError as exc:
                raise _refused(title, exc) from exc
            except DatasetError as exc:
                raise UnavailableError(f"'{title.name}': {exc.message}") from exc

    async def _columns_only(self, name: TableName, title: TableTitle, reason: str) -> LoadedTable:
        columns = await self.columns(name)
        try:
            return publishing.columns_only(title, columns, reason)
        except NoIcebergTypeError as exc:
            raise _refused(title, exc) from exc

    def _forget(self) -> None:
        """Forget tables that are gone."""
        known = {*self._catalog.datasets, *self._catalog.views}
        for name in self._kept.keys() - known:
            del self._kept[name]


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Compare by identity, as the catalog does; a number is compared by value."""
    return len(one) == len(other) and all(
        a is b or (isinstance(a, int | pa.Schema) and a == b)
        for a, b in zip(one, other, strict=True)
    )


def _has_failed(work: asyncio.Task[LoadedTable]) -> bool:
    return work.done() and (work.cancelled() or work.exception() is not None)


def _files(state: DatasetState) -> FilesTable | None:
    """Return the table of a dataset whose rows are in Parquet files."""
    spec = state.spec
    if state.is_accelerated or not isinstance(spec, FilesTable):
        return None
    return spec if all(scan.format == "parquet" for scan in spec.scans) else None


def _check(state: DatasetState) -> None:
    if (state.version if state.is_accelerated else state.spec) is not None:
        return
    if state.error is not None:
        raise UnavailableError(
            f"dataset '{state.name}' is in the error state: {state.error.message}"
        )
    raise UnavailableError(f"dataset '{state.name}' is still loading; try again")


def _whereabouts(state: DatasetState) -> str:
    if state.is_accelerated:
        return "kept by the runtime, because the dataset is accelerated"
    return f"read from '{state.dataset.connector}' in another form than Parquet files"


def _refused(title: TableTitle, exc: NoIcebergTypeError) -> NotIcebergError:
    return NotIcebergError(
        f"'{title.name}' cannot be a table of Iceberg: {exc}; read it by SQL, or define a view "
        "that casts or leaves out these columns"
    )


def _title(name: TableName, named: Dataset | View, origin: str) -> TableTitle:
    docs = {each.name: each.description for each in named.columns if each.description}
    return TableTitle(name, origin, named.description or "", docs)
