"""Builds the search service over the parts of a scheduler."""

import time

from caraway_core.manifest.runtime import CachingSettings
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.protocols.searching import TextReranker
from caraway_scheduler.catalog.catalog import Catalog
from caraway_scheduler.dispatch.searches.later import LaterSearchTables
from caraway_scheduler.dispatch.searches.reranking import Rerankers
from caraway_scheduler.dispatch.searches.searching import SearchDispatch
from caraway_scheduler.embeddings.service import Embeddings
from caraway_scheduler.history.tasks import TaskHistory
from caraway_scheduler.queries.cache import CacheSettings
from caraway_scheduler.queries.service import QueryService
from caraway_scheduler.search.found_rows import TableSearches
from caraway_scheduler.search.query_vectors import QueryVectors
from caraway_scheduler.search.results_cache import SearchResultsCache
from caraway_scheduler.search.searchable import SearchableTables
from caraway_scheduler.search.service import SearchService
from caraway_scheduler.search.tables import TableRanker
from caraway_scheduler.search.tallies import SearchTallies


def service(
    caching: CachingSettings,
    dispatch: Dispatch,
    catalog: Catalog,
    queries: QueryService,
    embeddings: Embeddings,
    history: TaskHistory,
    of_statements: LaterSearchTables,
) -> SearchService:
    """Return the service that searches the tables of a catalog, and let statements search them."""
    vectors = QueryVectors(embeddings)
    ranker = TableRanker(dispatch, vectors, history)
    tables = SearchableTables(catalog, dispatch.views, ranker.schema)
    of_statements.tables = TableSearches(tables, ranker)
    return SearchService(
        queries, dispatch, tables, ranker, _cache(caching), history, SearchTallies()
    )


def dispatch(inner: Dispatch, tables: LaterSearchTables) -> SearchDispatch:
    """Return a dispatch whose statements may search tables."""
    return SearchDispatch(inner, tables, Rerankers(_by_words))


def _by_words() -> TextReranker:
    # Imported here: numpy is slow to import, and most schedulers never rerank.
    from caraway_search.ranking.lexical import LexicalReranker

    return LexicalReranker()


def _cache(caching: CachingSettings) -> SearchResultsCache | None:
    wanted = caching.search_results
    if not wanted.enabled:
        return None
    settings = CacheSettings(max_size_bytes=wanted.max_size_bytes, ttl_s=wanted.item_ttl_s)
    return SearchResultsCache(settings, time.monotonic)
