"""Builds the search service over the parts of a scheduler."""

from caraway_ai.protocols import ChatCompletion, ChatRequest
from caraway_assist.embeddings.service import Embeddings
from caraway_assist.models.service import Models
from caraway_assist.models.states import ModelCaller
from caraway_assist.search.found_rows import TableSearches
from caraway_assist.search.query_vectors import QueryVectors
from caraway_assist.search.rerankers import AskModel, RerankerModels
from caraway_assist.search.results_cache import SearchResultsCache
from caraway_assist.search.searchable import SearchableTables
from caraway_assist.search.service import SearchService
from caraway_assist.search.tables import TableRanker
from caraway_assist.search.warm_up import SearchWarmUp
from caraway_core.concurrency.answer_cache import CacheSettings
from caraway_core.manifest.values.caching import CachingSettings
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.protocols.reranking import TextReranker
from caraway_scheduler.catalog.catalog import Catalog
from caraway_scheduler.dispatch.searches.later import LaterSearchTables
from caraway_scheduler.dispatch.searches.searching import SearchDispatch
from caraway_scheduler.history.tasks import TaskHistory
from caraway_scheduler.queries.service import QueryService
from caraway_serving import spans


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
    tables = SearchableTables(catalog, dispatch, ranker.schema)
    of_statements.tables = TableSearches(tables, ranker)
    warm_up = SearchWarmUp(catalog, dispatch, tables, ranker)
    catalog.on_installed = warm_up.changed
    return SearchService(queries, dispatch, tables, ranker, _cache(caching), history, warm_up)


def rerankers() -> RerankerModels:
    """Return the rerankers of statements, before there is a manifest and models."""
    return RerankerModels(_by_words)


def asked(models: Models) -> AskModel:
    """Return how rerankers call the models of a manifest: without tools, as the runtime itself."""

    async def ask(name: str, request: ChatRequest) -> ChatCompletion:
        span = spans.current.get() or spans.start(None)
        return await models.chat(name, request, ModelCaller(span, uses_tools=False))

    return ask


def dispatch(
    inner: Dispatch, tables: LaterSearchTables, rerankers: RerankerModels
) -> SearchDispatch:
    """Return a dispatch whose statements may search tables."""
    return SearchDispatch(inner, tables, rerankers)


def _by_words() -> TextReranker:
    # Imported here: numpy is slow to import, and most schedulers never rerank.
    from caraway_search.ranking.lexical import LexicalReranker

    return LexicalReranker()


def _cache(caching: CachingSettings) -> SearchResultsCache | None:
    search_results_cache_settings = caching.search_results
    if not search_results_cache_settings.enabled:
        return None
    settings = CacheSettings(
        max_size_bytes=search_results_cache_settings.max_size_bytes,
        ttl_s=search_results_cache_settings.item_ttl_s,
    )
    return SearchResultsCache(settings)
