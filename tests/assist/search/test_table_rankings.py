"""Rankings of a table ask for as few rows as they need."""

from collections.abc import Sequence

import pyarrow as pa

from caraway_assist.search.requests import LEAST_RANKED, SearchRequest
from caraway_assist.search.searchable import SearchableTable
from caraway_assist.search.table_rankings import SearchedTable, TableRankings
from caraway_assist.search.tables import RankedTable, Ranking, RankingRequest, TableRanker
from caraway_core.ids import TableName
from caraway_core.manifest.values.search_columns import KeywordSettings, VectorSettings
from caraway_core.sqltext.searching import MOST_HITS, SearchMethod
from caraway_core.statements import ReadPoint

SCHEMA = pa.schema({"id": pa.int64(), "body": pa.string()})
TABLE = SearchableTable(
    TableName("docs"), SCHEMA, (), (), VectorSettings(), KeywordSettings(), ("id",)
)
WORDS = Ranking(TABLE, SearchMethod.TEXT, ("body",))


class Ranker(TableRanker):
    """Ranks the same rows for every request, and keeps the limits."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = ids
        self.limits: list[int] = []

    async def ranked(self, ranking: Ranking, request: RankingRequest, at: ReadPoint) -> RankedTable:
        self.limits.append(request.limit)
        ids = list(self.ids)[: request.limit]
        rows = pa.table({"id": ids, "body": [""] * len(ids), "score": [1.0 / (n + 1) for n in ids]})
        return RankedTable(ranking, rows, None, True)


async def searched(ranker: Ranker, rankings: Sequence[Ranking], limit: int) -> SearchedTable:
    request = SearchRequest("text", ("docs",), limit)
    run = TableRankings(ranker, request, None, ReadPoint())
    return await run.table(TABLE, rankings, keeps_scores=len(rankings) == 1)


async def test_one_ranking_has_as_many_rows_as_are_asked_for() -> None:
    ranker = Ranker(range(500))
    found = await searched(ranker, [WORDS], 7)
    assert ranker.limits == [7] and len(found.rows) == 7


async def test_rows_of_one_key_make_room_for_others() -> None:
    ranker = Ranker([1, 1, 1, 2, 3, 4])
    found = await searched(ranker, [WORDS], 3)
    assert ranker.limits == [3, LEAST_RANKED] and len(found.rows) == 3


async def test_many_rows_of_one_key_make_room_for_others() -> None:
    ids = [1] * (LEAST_RANKED + 1) + [2] * LEAST_RANKED + [3]
    for rankings in ([WORDS], [WORDS, WORDS]):
        ranker = Ranker(ids)
        found = await searched(ranker, rankings, 3)
        assert len(found.rows) == 3
        assert max(ranker.limits) == MOST_HITS


async def test_few_rows_of_one_key_are_all_there_are() -> None:
    ranker = Ranker([1, 1])
    found = await searched(ranker, [WORDS], 3)
    assert ranker.limits == [3] and len(found.rows) == 1


async def test_rankings_that_are_fused_have_more_rows() -> None:
    ranker = Ranker(range(500))
    found = await searched(ranker, [WORDS, WORDS], 7)
    assert ranker.limits == [LEAST_RANKED] * 2 and len(found.rows) == 7
