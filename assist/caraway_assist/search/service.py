"""Answers searches over several tables: ranks each of them, merges the ranks and finds the rows."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import orjson
import pyarrow as pa

from caraway_assist.search import merging, statements
from caraway_assist.search.merging import MergedRow, RankedPlace
from caraway_assist.search.requests import SearchRequest
from caraway_assist.search.results_cache import SearchKey, SearchResultsCache
from caraway_assist.search.searchable import SearchableTable, SearchableTables
from caraway_assist.search.table_rankings import SearchedTable, TableRankings
from caraway_assist.search.tables import Ranking, TableRanker, rankings
from caraway_assist.search.tallies import SearchTallies
from caraway_assist.search.warm_up import SearchWarmUp
from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError, CatalogMovedError, InvalidQueryError
from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.sqltext.searching import SearchMethod
from caraway_core.statements import ReadPoint
from caraway_scheduler.history.tasks import TaskHistory, TaskRecord
from caraway_scheduler.queries.answers import CacheStatus
from caraway_scheduler.queries.service import QueryService
from caraway_serving import formats, spans
from caraway_serving.access import Principal
from caraway_serving.spans import Span

TASK = "search"
_TRIES = 4


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The results of a search as JSON, best first.

    `cache_status` is None if the search does not use the cache.
    """

    results: bytes
    cache_status: CacheStatus | None


class SearchService:
    """Searches tables for clients; each process has one."""

    def __init__(
        self,
        queries: QueryService,
        dispatch: Dispatch,
        tables: SearchableTables,
        ranker: TableRanker,
        cache: SearchResultsCache | None,
        history: TaskHistory,
        warm_up: SearchWarmUp,
    ) -> None:
        self.cache = cache
        self.tallies = SearchTallies()
        self.warm_up = warm_up
        self._queries = queries
        self._dispatch = dispatch
        self._tables = tables
        self.ranker = ranker
        self._history = history

    async def search(
        self, request: SearchRequest, principal: Principal, span: Span, *, bypass: bool = False
    ) -> SearchAnswer:
        """Search tables.

        Raises:
            ModelError: an embedding model is loading, or failed.
            QueryError: the request is invalid, or the search failed.
            ShuttingDownError: the process accepts no more work.
        """
        start_ns, error = time.time_ns(), None
        status: CacheStatus | None = None
        try:
            answer = await self._answer(request, principal, span, bypass)
            status = answer.cache_status
            return answer
        except CarawayError as exc:
            error = exc
            raise
        finally:
            self._record(request, principal, span, start_ns, error, status)

    async def _answer(
        self, request: SearchRequest, principal: Principal, span: Span, bypass: bool
    ) -> SearchAnswer:
        request.check()
        names = tuple(dict.fromkeys(map(self._tables.named, request.datasets)))
        request = replace(request, datasets=names)
        predicate = request.predicate
        reads = _reads(names, predicate)
        if self.cache is not None and not bypass:
            if self._key(request, principal) in self.cache:
                await self._queries.caught_up(reads)
            if (known := self.cache.get(self._key(request, principal))) is not None:
                return SearchAnswer(known, "HIT")
        key = self._key(request, principal)
        since = self.cache.clears if self.cache is not None else 0
        spans.current.set(replace(span, principal=principal.id))
        results, is_steady = await self._queries.limited(
            f"search: {request.text}",
            principal,
            lambda: self._caught_up(request, names, predicate, reads, principal),
        )
        if self.cache is None or not is_steady or not self._queries.may_keep(reads):
            return SearchAnswer(results, None)
        if key == self._key(request, principal):
            self.cache.put(key, results, since)
        return SearchAnswer(results, "BYPASS" if bypass else "MISS")

    def invalidate(self) -> None:
        """Drop kept answers, because their conditions may mean something else."""
        if self.cache is not None:
            self.cache.clear()

    def _key(self, request: SearchRequest, principal: Principal) -> SearchKey:
        return principal.id, self._queries.catalog()[0], request

    async def _caught_up(
        self,
        request: SearchRequest,
        names: Sequence[TableName],
        predicate: str | None,
        reads: str,
        principal: Principal,
    ) -> tuple[bytes, bool]:
        """Search one state of the data, which has all that was acknowledged before."""
        await self._queries.caught_up(reads)
        for _ in range(_TRIES - 1):
            with self._dispatch.reading() as point, suppress(CatalogMovedError):
                at = replace(point, viewer=principal.viewer)
                return await self._searched(request, names, predicate, at)
        # Catalogs change too often to keep one.
        at = ReadPoint(viewer=principal.viewer)
        return await self._searched(request, names, predicate, at)

    async def _searched(
        self,
        request: SearchRequest,
        names: Sequence[TableName],
        predicate: str | None,
        at: ReadPoint,
    ) -> tuple[bytes, bool]:
        """Return the results as JSON, and whether they hold until the catalog changes."""
        tables = [await self._tables.find(name) for name in names]
        for table in tables:
            table.check_columns(request.additional_columns)
        if request.keywords and not any(table.keywords for table in tables):
            raise InvalidQueryError(
                "'keywords' are sought in columns with `full_text_search`, which none of the "
                "datasets has; leave 'keywords' out, or enable it in the manifest"
            )
        run = TableRankings(self.ranker, request, predicate, at)
        made = [rankings(table) for table in tables]
        keeps_scores = _are_comparable([each for own in made for each in own], tables)
        searched_tables = await tasks.together(
            [run.table(table, own, keeps_scores) for table, own in zip(tables, made, strict=True)]
        )
        ranked = [each for searched in searched_tables for each in searched.ranked]
        results = _best(searched_tables, request)
        return orjson.dumps(results), all(each.reads_only_catalog for each in ranked)

    def _record(
        self,
        request: SearchRequest,
        principal: Principal,
        span: Span,
        start_ns: int,
        error: CarawayError | None,
        status: CacheStatus | None,
    ) -> None:
        end_ns = time.time_ns()
        self.tallies.ended((end_ns - start_ns) / 1e6, error)
        labels = {"datasets": ", ".join(request.datasets), "limit": str(request.limit)}
        if status == "HIT":
            labels["search_results_cache_hit"] = "true"
        self._history.add(
            TaskRecord(
                span=span,
                task=TASK,
                input=request.text,
                start_ns=start_ns,
                end_ns=end_ns,
                error_message=error.message if error is not None else None,
                labels=labels,
                principal=principal.id,
            )
        )


def _reads(names: Sequence[TableName], predicate: str | None) -> str:
    """Return a statement that reads what a search reads."""
    tables = ", ".join(map(statements.quoted_table, names))
    return f"SELECT * FROM {tables} WHERE {predicate or 'true'}"


def _are_comparable(made: Sequence[Ranking], tables: Sequence[SearchableTable]) -> bool:
    """Return whether scores of all rankings can be compared: they are of one kind and model."""
    if len(made) > len(tables):
        return False
    if len(made) == 1:
        return True
    kinds = set()
    for each in made:
        if each.method is not SearchMethod.VECTOR:
            return False
        column = each.table.embedded_column(*each.columns)
        kinds.add((column.embedder, each.table.vectors.metric))
    return len(kinds) == 1


def _best(tables: Sequence[SearchedTable], request: SearchRequest) -> list[dict[str, object]]:
    """Return the best rows of all tables; ties are in the order of the request."""
    places = [
        (-row.score, number, place)
        for number, searched in enumerate(tables)
        for place, row in enumerate(searched.rows)
    ]
    best = sorted(places)[: request.limit]
    values: dict[tuple[int, int], tuple[orjson.Fragment | None, orjson.Fragment | None]] = {}
    for number, searched in enumerate(tables):
        own = [place for _, chosen, place in best if chosen == number]
        for place, row in zip(own, _values(searched, own, request), strict=True):
            values[number, place] = row
    return [
        _result(tables[number], tables[number].rows[place], values[number, place])
        for _, number, place in best
    ]


def _values(
    searched: SearchedTable, places: Sequence[int], request: SearchRequest
) -> list[tuple[orjson.Fragment | None, orjson.Fragment | None]]:
    """Return the additional columns and the keys of some rows, as SQL returns them in JSON."""
    key = searched.table.key
    others = dict.fromkeys(each for each in request.additional_columns if each not in key)
    firsts = [searched.rows[place].places[0] for place in places]
    data, keys = (_objects(searched, firsts, columns) for columns in (tuple(others), key))
    return list(zip(data, keys, strict=True))


def _objects(
    searched: SearchedTable, places: Sequence[RankedPlace], columns: Sequence[str]
) -> Sequence[orjson.Fragment | None]:
    """Return an object of JSON for each row; None without columns.

    They are not read again: a number of many digits would lose some.
    """
    if not columns or not places:
        return [None for _ in places]
    selected = {
        number: searched.ranked[number].rows.select(columns)
        for number in {each.ranking for each in places}
    }
    parts = [selected[each.ranking].slice(each.row, count) for each, count in _runs(places)]
    encoder = formats.make("ndjson")
    pieces = [encoder.encode_start(parts[0].schema)]
    for batch in pa.concat_tables(parts).combine_chunks().to_batches():
        pieces.append(encoder.encode(batch))
    pieces.append(encoder.end(0))
    return list(map(orjson.Fragment, b"".join(pieces).splitlines()))


def _runs(places: Sequence[RankedPlace]) -> list[tuple[RankedPlace, int]]:
    """Return the first of places that follow each other in their ranking, and how many do."""
    runs: list[tuple[RankedPlace, int]] = []
    for each in places:
        if runs:
            first, count = runs[-1]
            if each == (first.ranking, first.row + count):
                runs[-1] = first, count + 1
                continue
        runs.append((each, 1))
    return runs


def _result(
    searched: SearchedTable,
    row: MergedRow,
    values: tuple[orjson.Fragment | None, orjson.Fragment | None],
) -> dict[str, object]:
    matches: dict[str, list[str]] = {}
    for place in row.places:
        for column, text in merging.matches(searched.ranked[place.ranking], place.row).items():
            known = matches.setdefault(column, [])
            if text not in known:
                known.append(text)
    parts = zip(("matches", "data", "primary_key"), (matches or None, *values), strict=True)
    result: dict[str, object] = {name: part for name, part in parts if part is not None}
    result["dataset"] = searched.table.name
    result["_score"] = row.score
    return result
