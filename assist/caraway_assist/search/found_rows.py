"""Searches one table for a statement or a tool: implements `SearchTables`."""

from collections.abc import Sequence

import pyarrow as pa

from caraway_assist.search import merging, requests
from caraway_assist.search.searchable import SearchableTable, SearchableTables
from caraway_assist.search.tables import (
    RankedTable,
    Ranking,
    RankingRequest,
    TableRanker,
    rankings,
)
from caraway_assist.search.ways import RankingWays
from caraway_core.errors import InvalidQueryError
from caraway_core.protocols.searching import FoundRows, SearchWay
from caraway_core.sqltext import predicates
from caraway_core.sqltext.searching import MOST_HITS, SearchMethod, TableSearch
from caraway_core.statements import ReadPoint

SCORE = "score"


class TableSearches:
    """Searches the tables of a catalog, within the limits of the statement that asks."""

    def __init__(self, tables: SearchableTables, ranker: TableRanker) -> None:
        self._tables = tables
        self._ranker = ranker
        self._ways = RankingWays(ranker)

    async def search(self, search: TableSearch, at: ReadPoint) -> FoundRows:
        """Return the best rows, at most `limit`.

        Raises:
            CatalogMovedError: the catalog of `at` is no longer available.
            InvalidQueryError: the table cannot be searched in this way.
            ModelError: the embedding model failed.
            QueryError: the search failed.
        """
        table = await self._tables.find(search.table)
        made = _rankings(table, search)
        request = _request(table, search, is_fused=len(made) > 1)
        ranked = [await self._ranker.ranked(each, request, at) for each in made]
        rows = _first_rows(ranked, table, search)
        return FoundRows(
            rows.rename_columns([*search.columns, SCORE]),
            all(each.reads_only_catalog for each in ranked),
        )

    async def explain(self, search: TableSearch, at: ReadPoint) -> SearchWay:
        """Return how a search would run, without running it.

        Raises:
            CatalogMovedError: the catalog of `at` is no longer available.
            InvalidQueryError: the table cannot be searched in this way.
        """
        table = await self._tables.find(search.table)
        where = _request(table, search, is_fused=False).where
        return await self._ways.choose_way(_rankings(table, search), where, at)


def _rankings(table: SearchableTable, search: TableSearch) -> Sequence[Ranking]:
    if search.method is SearchMethod.VECTOR:
        column = table.embedded_column(search.column)
        return [Ranking(table, SearchMethod.VECTOR, (column.column,))]
    if search.method is SearchMethod.TEXT:
        columns = tuple(each.column for each in table.keyword_columns(search.column))
        return [Ranking(table, SearchMethod.TEXT, columns)]
    if search.column is not None:
        raise InvalidQueryError("a hybrid search is of all searched columns; name none of them")
    return rankings(table)


def _request(table: SearchableTable, search: TableSearch, *, is_fused: bool) -> RankingRequest:
    table.check_columns(search.columns)
    if not search.text.strip():
        raise InvalidQueryError("the text to search for is empty")
    if len(search.text.encode(errors="replace")) > requests.MOST_TEXT_BYTES:
        raise InvalidQueryError(
            f"the text to search for has more than {requests.MOST_TEXT_BYTES} bytes"
        )
    if not 1 <= search.limit <= MOST_HITS:
        raise InvalidQueryError(f"the limit of a search is from 1 to {MOST_HITS}")
    columns = search.columns
    if is_fused:
        columns = tuple(dict.fromkeys((*search.columns, *table.key)))
    return RankingRequest(
        search.text,
        requests.words(search.text, search.keywords),
        tuple(dict.fromkeys(columns)),
        predicates.in_parentheses(search.where) if search.where else None,
        max(search.limit, requests.LEAST_RANKED) if is_fused else search.limit,
    )


def _first_rows(
    ranked: Sequence[RankedTable], table: SearchableTable, search: TableSearch
) -> pa.Table:
    """Return the best rows with the requested columns and their scores."""
    if len(ranked) == 1:
        rows, scores = ranked[0].rows, ranked[0].scores
    else:
        merged = merging.merged(ranked, table.key, search.limit, keeps_scores=False)
        firsts = [each.places[0] for each in merged]
        parts = [ranked[each.ranking].rows.slice(each.row, 1) for each in firsts]
        rows = pa.concat_tables(parts) if parts else ranked[0].rows.slice(0, 0)
        scores = pa.chunked_array([pa.array([each.score for each in merged], pa.float64())])
    names = {name: place for place, name in enumerate(rows.column_names[:-1])}
    columns = [rows.column(names[name]) for name in search.columns]
    return pa.table([*columns, scores], names=[*map(str, range(len(columns))), SCORE])
