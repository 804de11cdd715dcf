"""The data of this runtime as tools and prompts see it: read-only, within the caller's rights."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import orjson

from caraway_ai.tools.data_access import (
    KnownColumn,
    KnownIndex,
    KnownTable,
    ReadRows,
    RowLimits,
    SearchAsked,
    SearchedColumn,
)
from caraway_ai.tools.protocol import ToolCaller
from caraway_ai.tools.sql_names import quoted_table
from caraway_assist.search.requests import SearchRequest
from caraway_assist.search.service import SearchService
from caraway_core.errors import InvalidRequestError, NotFoundError
from caraway_core.ids import CatalogVersion, TableName
from caraway_core.loading import registry
from caraway_core.manifest import Dataset, View
from caraway_core.manifest.texts import names
from caraway_core.manifest.values.acceleration import Acceleration
from caraway_scheduler.catalog.catalog import Catalog
from caraway_scheduler.queries.requests import QueryRequest
from caraway_scheduler.queries.service import QueryService
from caraway_serving import formats
from caraway_serving.access import Principal
from caraway_serving.formats import datatypes
from caraway_serving.spans import Span

_PLAN_BYTES = 1024 * 1024
Components = Callable[[], Mapping[str, Mapping[str, str]]]


class RuntimeData:
    """Reads with the caller's rights, and never writes."""

    def __init__(
        self, queries: QueryService, catalog: Catalog, searches: SearchService | None = None
    ) -> None:
        self._searches = searches
        self.more_components: Components = dict
        """Returns the status of components other than tables."""
        self._queries = queries
        self._catalog = catalog
        self._columns: dict[TableName, tuple[CatalogVersion, Sequence[KnownColumn]]] = {}

    @property
    def can_search(self) -> bool:
        """True if any table can be searched."""
        if self._searches is None:
            return False
        tables = (state.dataset for state in self._catalog.datasets.values())
        return any(each.search for each in tables) or any(
            state.view.search for state in self._views()
        )

    def tables(self, caller: ToolCaller) -> Sequence[KnownTable]:
        """Return the datasets and views that the caller may read."""
        tables = [
            _known(state.dataset, "dataset", state.status)
            for state in self._catalog.datasets.values()
        ]
        tables += [_known(state.view, "view", state.status) for state in self._views()]
        return [table for table in tables if _may_read(table.name, caller)]

    def find(self, name: str, caller: ToolCaller) -> KnownTable:
        """Return the table with this name, however it is written.

        Raises:
            NotFoundError: the caller can read no such table.
        """
        tables = {table.name: table for table in self.tables(caller)}
        try:
            spelled = names.spellings(name)
        except ValueError:
            spelled = (name, name)
        for each in spelled:
            if (known_table := tables.get(TableName(each))) is not None:
                return known_table
            if (found := self._in_catalog(TableName(each), caller)) is not None:
                return found
        raise NotFoundError(registry.unknown("table", name[:100], tables))

    def _in_catalog(self, name: TableName, caller: ToolCaller) -> KnownTable | None:
        state = self._catalog.source_catalogs.find(name)
        if state is None or name not in state.listed or not _may_read(name, caller):
            return None
        return KnownTable(name, "table", description=state.declared.description)

    async def columns(self, table: TableName, caller: ToolCaller) -> Sequence[KnownColumn]:
        """Return the columns of a table.

        Raises:
            QueryError: it cannot be read.
        """
        version = self._catalog.version
        known = self._columns.get(table)
        if known is not None and known[0] == version and _may_read(table, caller):
            return known[1]
        request = self._request(f"SELECT * FROM {quoted_table(table)} LIMIT 0", {}, caller)
        answer = await self._queries.start(request)
        schema = answer.rows.schema
        answer.rows.close()
        declared = {each.name: each for each in self._declared(table)}
        found = []
        for each in schema:
            column = declared.get(each.name)
            found.append(
                KnownColumn(
                    each.name,
                    datatypes.display(each.type),
                    each.nullable,
                    column.description if column else None,
                    column.type if column else None,
                )
            )
        self._columns[table] = version, found
        return found

    async def query(self, sql: str, caller: ToolCaller, limits: RowLimits) -> ReadRows:
        """Run a statement that may only read.

        Raises:
            QueryError: it is invalid, would write, reads what the caller may not, or failed.
        """
        return await self.bound_query(sql, {}, caller, limits)

    async def bound_query(
        self, sql: str, parameters: Mapping[str, object], caller: ToolCaller, limits: RowLimits
    ) -> ReadRows:
        """Run a statement that may only read, with values for its placeholders.

        Raises:
            QueryError: as `query`.
        """
        request = self._request(sql, parameters, caller)
        answer = self._queries.recall(request) or await self._queries.start(request)
        rows: list[dict[str, Any]] = []
        used = 0
        try:
            async for batch in answer.rows:
                room = limits.rows - len(rows)
                encoded = _encoded(batch.slice(0, room))
                used += len(encoded)
                rows += orjson.loads(encoded)
                if used > limits.bytes:
                    return ReadRows(_within(rows, limits.bytes), is_truncated=True)
                if batch.num_rows > room:
                    return ReadRows(rows, is_truncated=True)
        finally:
            answer.rows.close()
        return ReadRows(rows)

    async def search(self, asked: SearchAsked, caller: ToolCaller) -> Any:
        """Search tables.

        Raises:
            InvalidRequestError: nothing can be searched here.
            NotFoundError: the caller can read no such table.
            QueryError: the condition reads what the caller may not, or the search failed.
        """
        if self._searches is None:
            raise InvalidRequestError("no dataset can be searched")
        tables = [self.find(name, caller).name for name in asked.datasets]
        request = SearchRequest(
            asked.text,
            tuple(tables),
            asked.limit,
            asked.where,
            asked.additional_columns,
            asked.keywords,
        )
        if caller.tables is not None and (predicate := request.predicate) is not None:
            # A condition may have subqueries: planned under the limits, it names no other table.
            for table in tables:
                sql = f"EXPLAIN SELECT 1 FROM {quoted_table(table)} WHERE {predicate}"
                await self.query(sql, caller, RowLimits(1, _PLAN_BYTES))
        span = span_of(caller).child()
        answer = await self._searches.search(request, principal_of(caller), span)
        return {"results": orjson.loads(answer.results)}

    def components(self) -> Mapping[str, Mapping[str, str]]:
        """Return the status of every component by kind and name."""
        datasets = {state.name: state.status for state in self._catalog.datasets.values()}
        views = {state.name: state.status for state in self._views()}
        return {"datasets": datasets, "views": views, **self.more_components()}

    def _views(self) -> Sequence[Any]:
        return list(self._catalog.views.values())

    def _declared(self, table: TableName) -> Sequence[Any]:
        if (state := self._catalog.datasets.get(table)) is not None:
            return state.dataset.columns
        view = self._catalog.views.get(table)
        return view.view.columns if view is not None else ()

    def _request(
        self, sql: str, parameters: Mapping[str, object], caller: ToolCaller
    ) -> QueryRequest:
        return QueryRequest(
            sql=sql,
            principal=principal_of(caller),
            span=span_of(caller).child(),
            parameters=dict(parameters),
            protocol="internal",
            may_write=False,
            readable=caller.tables,
        )


def principal_of(caller: ToolCaller) -> Principal:
    """Return the principal that a tool works for."""
    return Principal(caller.principal, caller.may_write, caller.is_admin)


def span_of(caller: ToolCaller) -> Span:
    """Return the span of a call."""
    return Span(caller.trace_id, caller.span_id, caller.parent_span_id, caller.principal)


def caller_of(
    principal: Principal, span: Span, tables: frozenset[TableName] | None = None
) -> ToolCaller:
    """Return the caller for a request."""
    return ToolCaller(
        principal.id,
        principal.may_write,
        principal.is_admin,
        tables,
        span.trace_id,
        span.span_id,
        span.parent_span_id,
    )


def _may_read(name: TableName, caller: ToolCaller) -> bool:
    return caller.tables is None or name in caller.tables


def _encoded(batch: Any) -> bytes:
    encoder = formats.make("json")
    parts = (encoder.encode_start(batch.schema), encoder.encode(batch), encoder.end(0))
    return b"".join(parts)


def _within(rows: list[dict[str, object]], most_bytes: int) -> list[dict[str, object]]:
    used = 0
    for number, row in enumerate(rows):
        used += len(orjson.dumps(row)) + 1
        if used > most_bytes:
            return rows[: max(number, 1)]
    return rows


def _known(table: Dataset | View, kind: Literal["dataset", "view"], status: str) -> KnownTable:
    acceleration = table.acceleration if isinstance(table, Dataset) else None
    search = table.search
    return KnownTable(
        name=TableName(table.name),
        kind=kind,
        status=status,
        description=table.description,
        metadata=table.metadata,
        may_write=isinstance(table, Dataset) and table.access == "read_write",
        primary_key=acceleration.primary_key if acceleration else (),
        indexes=_indexes(acceleration),
        vector_columns=tuple(
            SearchedColumn(
                each.column, each.embedder, each.row_id, chunked=each.chunking is not None
            )
            for each in search.embedded
        ),
        text_columns=tuple(
            SearchedColumn(each.column, row_id=each.row_id) for each in search.keywords
        ),
    )


def _indexes(acceleration: Acceleration | None) -> tuple[KnownIndex, ...]:
    if acceleration is None:
        return ()
    return tuple(KnownIndex(each.columns, each.is_unique) for each in acceleration.indexes)
