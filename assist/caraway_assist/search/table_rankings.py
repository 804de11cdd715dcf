"""Runs the rankings of each table of a search, and merges them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from caraway_assist.search import merging
from caraway_assist.search.merging import MergedRow
from caraway_assist.search.requests import SearchRequest
from caraway_assist.search.searchable import SearchableTable
from caraway_assist.search.tables import RankedTable, Ranking, RankingRequest, TableRanker
from caraway_core.concurrency import tasks
from caraway_core.sqltext.searching import MOST_HITS
from caraway_core.statements import ReadPoint

_AT_ONCE = 4
"""The number of rankings of one search that run at once."""


@dataclass(frozen=True, slots=True)
class SearchedTable:
    """A table with its rankings and the best of their merged rows."""

    table: SearchableTable
    ranked: Sequence[RankedTable]
    rows: Sequence[MergedRow]


class TableRankings:
    """Runs the rankings of a search, a few at once."""

    def __init__(
        self, ranker: TableRanker, request: SearchRequest, predicate: str | None, at: ReadPoint
    ) -> None:
        self._ranker = ranker
        self._request = request
        self._predicate = predicate
        self._at = at
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def table(
        self, table: SearchableTable, made: Sequence[Ranking], keeps_scores: bool
    ) -> SearchedTable:
        """Rank the rows of a table, and merge its rankings."""
        if len(made) == 1:
            # The best rows of one ranking are the best of the table, unless some are one row.
            searched = await self._searched(table, made, self._request.limit, keeps_scores)
            if self._is_enough(searched, self._request.limit):
                return searched
        searched = await self._searched(table, made, self._request.ranked, keeps_scores)
        if self._is_enough(searched, self._request.ranked):
            return searched
        return await self._searched(table, made, MOST_HITS, keeps_scores)

    def _is_enough(self, searched: SearchedTable, limit: int) -> bool:
        """Return whether rankings of `limit` rows have all requested rows, or all that exist.

        Several rows of one key are one row, so that others have room.
        """
        is_cut = any(each.rows.num_rows >= limit for each in searched.ranked)
        return not is_cut or limit >= MOST_HITS or len(searched.rows) >= self._request.limit

    async def _searched(
        self, table: SearchableTable, rankings: Sequence[Ranking], limit: int, keeps_scores: bool
    ) -> SearchedTable:
        ranked = await tasks.together([self._ranked(each, limit) for each in rankings])
        return SearchedTable(
            table,
            ranked,
            merging.merged(ranked, table.key, self._request.limit, keeps_scores=keeps_scores),
        )

    async def _ranked(self, ranking: Ranking, limit: int) -> RankedTable:
        request = RankingRequest(
            self._request.text,
            self._request.words,
            _columns(ranking.table, self._request),
            self._predicate,
            limit,
            has_chunks=True,
        )
        async with self._slots:
            return await self._ranker.ranked(ranking, request, self._at)


def _columns(table: SearchableTable, request: SearchRequest) -> tuple[str, ...]:
    """Return the columns that a search reads: keys, matched columns, and requested columns."""
    found = [*table.key, *request.additional_columns]
    for each in table.embedded:
        found.append(each.column)
        if each.chunking is not None and each.offset_column in table.schema.names:
            found.append(each.offset_column)
    found += [each.column for each in table.keywords]
    return tuple(dict.fromkeys(found))
