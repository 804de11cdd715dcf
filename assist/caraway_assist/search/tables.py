"""Searches one table by statements over functions of the engine."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from caraway_assist.search import filter_syntax, statements
from caraway_assist.search.query_vectors import QueryVectors
from caraway_assist.search.searchable import SearchableTable
from caraway_assist.search.statements import BestChunk, RankedRows, SearchStatement
from caraway_core.errors import CarawayError, InvalidQueryError, NotDistributableError
from caraway_core.ids import TableName, new_query_id
from caraway_core.index_orders import IndexOrder, VectorOrder, WordOrder
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.sqltext.searching import SearchMethod
from caraway_core.statements import ReadPoint, Statement
from caraway_scheduler.history.tasks import TaskHistory, TaskRecord
from caraway_serving import spans

_TASKS = {SearchMethod.VECTOR: "vector_search", SearchMethod.TEXT: "text_search"}


@dataclass(frozen=True, slots=True)
class Ranking:
    """A way to rank the rows of a table: by the vectors of a column, or by words in columns."""

    table: SearchableTable
    method: SearchMethod
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankingRequest:
    """The text and filter of a ranking, and the columns that it returns.

    `words` are sought by TEXT rankings, `text` by VECTOR rankings. `where` is in parentheses.
    """

    text: str
    words: str
    columns: tuple[str, ...]
    where: str | None
    limit: int
    has_chunks: bool = False
    """True if the request asks for the position of the best chunk."""


@dataclass(frozen=True, slots=True)
class RankedTable:
    """The best rows of a ranking: the requested columns and, last, their scores.

    `chunks` are the places of the best chunks, if the request has them and the column is chunked.
    """

    ranking: Ranking
    rows: pa.Table
    chunks: pa.ChunkedArray | None
    reads_only_catalog: bool

    @property
    def scores(self) -> pa.ChunkedArray:
        """The scores of the rows; a greater one is better."""
        return self.rows.column(self.rows.num_columns - 1)


class TableRanker:
    """Ranks the rows of tables."""

    def __init__(
        self,
        dispatch: Dispatch,
        vectors: QueryVectors,
        history: TaskHistory,
    ) -> None:
        self._dispatch = dispatch
        self.vectors = vectors
        self._history = history

    async def schema(self, table: TableName) -> pa.Schema:
        """Return the columns of a table, as a statement reads them."""
        sql = f"SELECT * FROM {statements.quoted_table(table)} LIMIT 0"
        rows, _ = await self.read(SearchStatement(sql), ReadPoint())
        return rows.schema

    async def ranked(self, ranking: Ranking, request: RankingRequest, at: ReadPoint) -> RankedTable:
        """Return the best rows of a ranking, best first.

        Raises:
            CatalogMovedError: the catalog of `at` is no longer available.
            ModelError: the embedding model failed.
            QueryError: the search failed.
        """
        by = {SearchMethod.VECTOR: self._by_vectors, SearchMethod.TEXT: self._by_words}
        try:
            return await self._recorded(
                ranking, request, lambda: by[ranking.method](ranking, request, at)
            )
        except InvalidQueryError as exc:
            if request.where is None or not filter_syntax.is_wrong(exc):
                raise
            raise await filter_syntax.explained(request.where, self._run) or exc from exc

    async def _by_vectors(
        self, ranking: Ranking, request: RankingRequest, at: ReadPoint
    ) -> RankedTable:
        table = ranking.table
        column = table.embedded_column(*ranking.columns)
        vector = await self.vectors.vector_of_text(request.text, column.embedder)
        metric = table.vectors.metric
        has_vectors = column.vector_column in table.schema.names
        # Texts without vectors are embedded whole: where chunks begin is stored with vectors.
        is_chunked = has_vectors and column.chunking is not None
        vectors = (
            statements.quoted(column.vector_column)
            if has_vectors
            else statements.embedded(column.column, column.embedder)
        )
        score = statements.vector_score(vectors, metric, is_chunked=is_chunked)
        chunk = None
        if is_chunked and request.has_chunks:
            chunk = BestChunk(column.vector_column, metric)
        packed = statements.packed_vector(vector)
        rows = _rows(ranking, request)
        statement = rows.statement(score, {"vector": statements.bound_vector(packed)}, chunk)
        if has_vectors and table.vectors.is_indexed:
            recall, has_parts = table.vectors.recall, chunk is not None
            by = VectorOrder(column.vector_column, packed, metric, recall, has_parts)
            statement = replace(statement, index=rows.order(by))
        return _ranked(ranking, request, *await self.read(statement, at))

    async def _by_words(
        self, ranking: Ranking, request: RankingRequest, at: ReadPoint
    ) -> RankedTable:
        # Imported here: numpy is slow to import, and most schedulers never search.
        from caraway_engine.searching.text_requests import TextRequest

        table = ranking.table
        language = table.keyword_settings.language
        text_request = TextRequest(request.words, language, (1.0,) * len(ranking.columns))
        by = WordOrder(ranking.columns, text_request.text, language, text_request.boosts)
        best = _rows(ranking, request)
        # An index counts what scores need in the same call, or fails: no statement does both. Its
        # text and parameter only distinguish this statement from others.
        at_once = SearchStatement(
            f"SELECT {statements.text_score(ranking.columns)} FROM "
            f"{statements.quoted_table(table.name)}",
            {"request": request.words},
            replace(best.order(by), is_required=True),
        )
        with suppress(NotDistributableError):
            return _ranked(ranking, request, *await self.read(at_once, at))
        counting = statements.text_statistics(table.name, ranking.columns, text_request.encoded())
        counting = replace(counting, index=IndexOrder(table.name, by))
        counted, is_steady = await self.read(counting, at)
        (found,) = counted.column(0).to_pylist()
        if not found:
            empty = _rows(ranking, request).statement("CAST(NULL AS DOUBLE)", {})
            return _ranked(ranking, request, *await self.read(empty, at))
        text_request = text_request.with_statistics(found)
        statement = best.statement(
            statements.text_score(ranking.columns), {"request": text_request.encoded()}
        )
        rows, is_steady_too = await self.read(statement, at)
        return _ranked(ranking, request, rows, is_steady and is_steady_too)

    async def read(self, statement: SearchStatement, at: ReadPoint) -> tuple[pa.Table, bool]:
        """Return the rows of a statement, and whether they hold until the catalog changes."""
        stream = await self._dispatch.execute(
            new_query_id(),
            Statement(
                statement.sql,
                statement.parameters,
                viewer=at.viewer,
                logs=at.logs,
                sources=frozenset(),
                catalog_version=at.catalog_version,
                index=statement.index,
            ),
        )
        try:
            batches = [batch async for batch in stream]
        finally:
            await stream.aclose()
        return pa.Table.from_batches(batches, stream.schema), stream.reads_only_catalog

    async def _run(self, sql: str) -> None:
        await self.read(SearchStatement(sql), ReadPoint())

    async def _recorded(
        self,
        ranking: Ranking,
        request: RankingRequest,
        work: Callable[[], Awaitable[RankedTable]],
    ) -> RankedTable:
        """Record a ranking as a task, whose children are its model call and its fragments."""
        before = spans.current.get() or spans.start(None)
        span = before.child()
        token = spans.current.set(span)
        start_ns, error, rows = time.time_ns(), None, 0
        try:
            table = await work()
            rows = table.rows.num_rows
            return table
        except CarawayError as exc:
            error = exc.message
            raise
        except asyncio.CancelledError:
            error = "the search was cancelled"
            raise
        finally:
            spans.current.reset(token)
            is_text = ranking.method is SearchMethod.TEXT
            labels = {
                "table": ranking.table.name,
                "columns": ", ".join(ranking.columns),
                "limit": str(request.limit),
                "rows_produced": str(rows),
            }
            if request.where:
                labels["where"] = request.where[1:-1].strip()[:200]
            self._history.add(
                TaskRecord(
                    span=span,
                    task=_TASKS[ranking.method],
                    input=request.words if is_text else request.text,
                    start_ns=start_ns,
                    end_ns=time.time_ns(),
                    error_message=error,
                    labels=labels,
                    principal=before.principal,
                )
            )


def _rows(ranking: Ranking, request: RankingRequest) -> RankedRows:
    table = ranking.table
    ties = statements.sortable(table.schema, table.key or request.columns)
    return RankedRows(table.name, request.columns, ties, request.where, request.limit)


def _ranked(
    ranking: Ranking, request: RankingRequest, found: pa.Table, is_steady: bool
) -> RankedTable:
    """Return the rows with a score: those without one come last."""
    width = len(request.columns)
    scores = found.column(width)
    found = found.slice(0, len(scores) - scores.null_count)
    chunks = found.column(width + 1) if found.num_columns > width + 1 else None
    return RankedTable(ranking, found.select(range(width + 1)), chunks, is_steady)


def rankings(table: SearchableTable) -> Sequence[Ranking]:
    """Return every way to rank a table: by each column of vectors, and by all words together."""
    made = [Ranking(table, SearchMethod.VECTOR, (each.column,)) for each in table.embedded]
    if table.keywords:
        words = tuple(each.column for each in table.keywords)
        made.append(Ranking(table, SearchMethod.TEXT, words))
    return made
