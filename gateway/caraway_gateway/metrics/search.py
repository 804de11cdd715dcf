"""Metrics of searches and of the cache of their results."""

from collections.abc import Iterable

from prometheus_client.core import Metric

from caraway_assist.search.results_cache import SearchResultsCache
from caraway_assist.search.service import SearchService
from caraway_serving.metric_families import Families, Table, counter, gauge, histogram

_SEARCHES: Table[SearchService] = (
    counter("search_requests", "Searches that ended.", "", lambda of: of.tallies.requests),
    counter("search_failures", "Searches failed.", "error", lambda of: of.tallies.failures),
    histogram("search_duration_ms", "Duration of searches, in milliseconds.",
              "", lambda of: of.tallies.durations),
)  # fmt: skip
_CACHE: Table[SearchResultsCache] = (
    gauge("search_results_cache_max_size_bytes",
          "Maximum size of the search results cache, in bytes.",
          "", lambda of: of.settings.max_size_bytes),
    gauge("search_results_cache_size_bytes", "Bytes in the search results cache.",
          "", lambda of: of.size_bytes),
    gauge("search_results_cache_items_count", "Answers in the search results cache.", "", len),
    counter("search_results_cache_requests", "Lookups in the search results cache.",
            "", lambda of: of.requests),
    counter("search_results_cache_hits",
            "Lookups in the search results cache that found an answer.",
            "", lambda of: of.hits),
)  # fmt: skip


def collect(search: SearchService, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    yield from families.families_of(_SEARCHES, search)
    if search.cache is not None:
        yield from families.families_of(_CACHE, search.cache)
