"""Dispatches statements with searches: first the searches, then the statement over their rows."""

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import pyarrow as pa

from caraway_core.concurrency import tasks
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CatalogMovedError, InvalidQueryError
from caraway_core.ids import QueryId, TableName, new_query_id
from caraway_core.protocols.dispatch import BatchStream, Dispatch
from caraway_core.protocols.searching import SearchTables
from caraway_core.protocols.wrapped_streams import WrappedStream
from caraway_core.sqltext import explained, table_calls, writing
from caraway_core.sqltext.searching import FUNCTIONS, MOST_HITS, TableSearch
from caraway_core.statements import GivenRows, ReadPoint, Statement, ViewFacts
from caraway_core.statements.questions import (
    Answer,
    SearchQuestion,
    StatementQuestion,
    WriteQuestion,
)
from caraway_core.statements.searches import (
    FusedSearches,
    RerankedRows,
    StatementSearch,
)
from caraway_scheduler.dispatch.explanations.explaining import ExplainedStream
from caraway_scheduler.dispatch.searches import explaining, fusing, reranking
from caraway_scheduler.dispatch.searches.explaining import RanSearch
from caraway_scheduler.dispatch.searches.reranking import Rerankers
from caraway_scheduler.dispatch.wrappers.wrapping import WrappedDispatch

_TRIES = 3
_SEARCH_PLAN = "search_plan"


class SearchDispatch(WrappedDispatch):
    """A dispatch that runs the searches of statements before them.

    Statements without a search pass through. A search and its statement read the same catalog and
    logs, unless the statement writes.
    """

    def __init__(
        self,
        inner: Dispatch,
        tables: SearchTables,
        rerankers: Rerankers,
        clock: SecondsClock = time.time,
    ) -> None:
        super().__init__(inner)
        self._tables = tables
        self._rerankers = rerankers
        self._clock = clock
        self._views: Mapping[TableName, ViewFacts] | None = None
        self._words: tuple[str, ...] = FUNCTIONS

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Plan a statement and start it, after its searches.

        Raises:
            ModelError: the model of a search failed.
            QueryError: it cannot be planned or started, or a search failed.
        """
        if statement.found is not None or not self._may_search(statement.sql):
            return await self._inner.execute(query_id, statement)
        for _ in range(_TRIES - 1):
            try:
                return await self._searched(query_id, statement)
            except CatalogMovedError:
                if statement.catalog_version is not None:
                    raise
        return await self._searched(query_id, statement)

    async def ask(self, question: StatementQuestion[Answer]) -> Answer:
        """See `Dispatch.ask`. A write is found without the rows of searches."""
        statement = question.statement
        is_write = isinstance(question, WriteQuestion)
        if is_write and statement.found is None and self._may_search(statement.sql):
            question = replace(question, statement=replace(statement, found=()))
        return await self._inner.ask(question)

    def _may_search(self, sql: str) -> bool:
        views = self._inner.views()
        if views is not self._views:
            self._views = views
            searching = (name.rpartition(".")[2] for name, each in views.items() if each.searches)
            self._words = (*FUNCTIONS, *map(str.lower, searching))
        return table_calls.may_have(sql, self._words)

    async def _searched(self, query_id: QueryId, statement: Statement) -> BatchStream:
        with self._point(statement) as at:
            if at.catalog_version is not None:
                statement = replace(statement, catalog_version=at.catalog_version, logs=at.logs)
            searches = await self._inner.ask(SearchQuestion(statement))
            for each in searches:
                if isinstance(each.work, RerankedRows):
                    # A wrong name is refused before anything runs, and by EXPLAIN, too.
                    self._rerankers.check(each.work.model)
            asked = explained.parse(statement.sql)
            at = replace(at, viewer=statement.viewer)
            run = _Searches(self, statement, at, is_explained=asked is not None)
            if asked is not None and not asked.is_run:
                given_rows = await run.explain(searches)
            else:
                given_rows = await run.rows(searches)
            stream = await self._inner.execute(query_id, replace(statement, found=given_rows))
        if asked is not None and statement.store is None:
            return ExplainedStream(stream, {_SEARCH_PLAN: explaining.described(searches, run.ran)})
        return stream if run.reads_only_catalog else _Changing(stream)

    def _point(self, statement: Statement) -> AbstractContextManager[ReadPoint]:
        if statement.catalog_version is not None:
            return nullcontext(ReadPoint(statement.catalog_version, statement.logs))
        if statement.writable and writing.may_change(statement.sql):
            return nullcontext(ReadPoint())
        return self._inner.reading()


class _Searches:
    """The searches of one statement."""

    def __init__(
        self, dispatch: SearchDispatch, statement: Statement, at: ReadPoint, *, is_explained: bool
    ) -> None:
        self._dispatch = dispatch
        self._statement = statement
        self._at = at
        self._is_explained = is_explained
        self.ran: list[RanSearch] = []
        self.reads_only_catalog = True

    async def rows(self, searches: Sequence[StatementSearch]) -> tuple[GivenRows, ...]:
        """Run searches at the same time, and return their rows under their names."""
        given_rows = await tasks.together([self._given(each) for each in searches])
        return tuple(given_rows)

    async def explain(self, searches: Sequence[StatementSearch]) -> tuple[GivenRows, ...]:
        """Ask how searches would run, and return no rows for each."""
        tables = self._dispatch._tables
        for search in _table_searches(searches):
            self.ran.append(RanSearch(search, await tables.explain(search, self._at)))
        return tuple(
            GivenRows.named(each.name, each.schema.empty_table(), each.schema) for each in searches
        )

    async def _given(self, search: StatementSearch) -> GivenRows:
        match search.work:
            case TableSearch() as work:
                rows = await self._found(work)
            case FusedSearches() as work:
                rows = await self._fused(search, work)
            case RerankedRows() as work:
                rows = await self._reranked(search, work)
        names = [*search.columns, *([search.score] if search.score else [])]
        rows = rows.select(range(len(names))).rename_columns(names)
        return GivenRows.named(search.name, rows, search.schema)

    async def _found(self, search: TableSearch) -> pa.Table:
        began_s = time.perf_counter()
        found_rows = await self._dispatch._tables.search(search, self._at)
        elapsed_ms = (time.perf_counter() - began_s) * 1000
        if self._is_explained:
            # After the search, which may have built the index.
            way = await self._dispatch._tables.explain(search, self._at)
            self.ran.append(RanSearch(search, way, found_rows.rows.num_rows, elapsed_ms))
        self.reads_only_catalog &= found_rows.reads_only_catalog
        return found_rows.rows

    async def _fused(self, search: StatementSearch, work: FusedSearches) -> pa.Table:
        found = await tasks.together([self._found(each.search) for each in work.searches])
        columns = work.searches[0].search.columns
        rows = [each.select(range(len(columns))).rename_columns(columns) for each in found]
        if work.decay is not None:
            self.reads_only_catalog = False
        now_s = self._dispatch._clock()
        return fusing.fused(work, rows, search.columns, search.limit, now_s)

    async def _reranked(self, search: StatementSearch, work: RerankedRows) -> pa.Table:
        statement = replace(
            self._statement,
            sql=work.sql,
            parameters=work.parameters,
            may_write=False,
            writable=frozenset(),
            store=None,
            found=None,
        )
        stream = await self._dispatch.execute(new_query_id(), statement)
        self.reads_only_catalog &= stream.reads_only_catalog
        if work.model is not None:
            # Models may answer differently each time, and manifests may give their names to others.
            self.reads_only_catalog = False
        rows = await _collected(stream)
        return await reranking.reranked(work, rows, search.limit, self._dispatch._rerankers)


def _table_searches(searches: Sequence[StatementSearch]) -> list[TableSearch]:
    table_searches: list[TableSearch] = []
    for each in searches:
        if isinstance(each.work, TableSearch):
            table_searches.append(each.work)
        elif isinstance(each.work, FusedSearches):
            table_searches += [part.search for part in each.work.searches]
    return table_searches


async def _collected(stream: BatchStream) -> pa.Table:
    """Read all rows of the input of rerank.

    Raises:
        InvalidQueryError: there are too many.
    """
    batches: list[pa.RecordBatch] = []
    count = 0
    try:
        async for batch in stream:
            batches.append(batch)
            count += batch.num_rows
            if count > MOST_HITS:
                raise InvalidQueryError(
                    f"the input of rerank has more than {MOST_HITS:,} rows; add LIMIT to it"
                )
    finally:
        await stream.aclose()
    return pa.Table.from_batches(batches, stream.schema)


class _Changing(WrappedStream):
    """A stream whose rows may differ although the catalog is the same."""

    def __init__(self, stream: BatchStream) -> None:
        super().__init__(stream)
        self.reads_only_catalog = False
