"""Searches by plain SQL, so that a statement without searches gives the expected rows."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.errors import InvalidQueryError
from caraway_core.ids import new_query_id
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.protocols.reranking import TextReranker
from caraway_core.protocols.searching import FoundRows, SearchWay
from caraway_core.sqltext.searching import SearchMethod, TableSearch
from caraway_core.statements import ReadPoint, Statement
from caraway_scheduler.dispatch.searches.searching import SearchDispatch


def score(method: SearchMethod, column: str, text: str) -> str:
    """The score as SQL: how alike the lengths are, or how often the text occurs."""
    if method is SearchMethod.VECTOR:
        return f"1.0 / (1 + abs(character_length({column}) - {len(text)}))"
    occurrences = f"character_length({column}) - character_length(replace({column}, '{text}', ''))"
    return f"CAST({occurrences} AS DOUBLE)"


@dataclass
class PlainSearches:
    """Searches the column `body` of any table, and remembers its requests."""

    dispatch: Dispatch
    asked: list[TableSearch] = field(default_factory=list)
    points: list[ReadPoint] = field(default_factory=list)
    on_found: Callable[[], Awaitable[object]] | None = None
    """Called after each search."""

    async def search(self, search: TableSearch, at: ReadPoint) -> FoundRows:
        self.asked.append(search)
        self.points.append(at)
        await self.explain(search, at)
        column = search.column or "body"
        best = f"{score(search.method, column, search.text)} AS best"
        wanted = [*(f'"{each}"' for each in search.columns), best]
        sql = f'SELECT {", ".join(wanted)} FROM "{search.table}" WHERE {search.where or "true"}'
        order = f"ORDER BY best DESC, id LIMIT {search.limit}"
        statement = Statement(
            f"{sql} {order}",
            {},
            sources=frozenset(),
            catalog_version=at.catalog_version,
            logs=at.logs,
        )
        stream = await self.dispatch.execute(new_query_id(), statement)
        batches = [batch async for batch in stream]
        rows = pa.Table.from_batches(batches, stream.schema)
        if self.on_found is not None:
            await self.on_found()
        return FoundRows(rows.rename_columns([*search.columns, "score"]))

    async def explain(self, search: TableSearch, at: ReadPoint) -> SearchWay:
        if search.column not in (None, "body", "title"):
            raise InvalidQueryError(f"column '{search.column}' cannot be searched")
        return SearchWay(search.column or "body", "exact", {"probes": "all"})


class CountingReranker:
    """Scores a text by the number of its words that are in the query."""

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        words = set(query.split())
        return [float(sum(word in words for word in text.split())) for text in texts]


class FakeRerankers:
    """`CountingReranker` under its name and without one, and others."""

    def __init__(self, **others: TextReranker) -> None:
        counting = CountingReranker()
        self._known: dict[str | None, TextReranker] = {None: counting, "counting": counting}
        for name, reranker in others.items():
            self._known[name] = reranker

    def check(self, model: str | None) -> None:
        if model not in self._known:
            raise InvalidQueryError(f"rerank: no reranker '{model}'")

    async def scores(self, model: str | None, query: str, texts: Sequence[str]) -> Sequence[float]:
        return self._known[model].scores(query, texts)


def searching(dispatch: Dispatch) -> tuple[SearchDispatch, PlainSearches]:
    """Let statements search over a dispatch."""
    tables = PlainSearches(dispatch)
    return SearchDispatch(dispatch, tables, FakeRerankers()), tables
