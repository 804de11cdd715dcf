"""Metrics of searches and of the cache of their results."""

from collections.abc import Iterable

from prometheus_client.core import Metric

from caraway_assist.search.service import SearchService
from caraway_serving.metric_families import Families


def collect(search: SearchService, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    tallies, cache = search.tallies, search.cache
    yield families.counter("search_requests", "Searches that ended.", (), {(): tallies.requests})
    yield families.counter("search_failures", "Searches failed.", ("error",), tallies.failures)
    yield families.histogram(
        "search_duration_ms", "Duration of searches, in milliseconds.", (), tallies.durations
    )
    if cache is None:
        return
    yield families.gauge(
        "search_results_cache_max_size_bytes",
        "Maximum size of the search results cache, in bytes.",
        cache.settings.max_size_bytes,
    )
    yield families.gauge(
        "search_results_cache_size_bytes", "Bytes in the search results cache.", cache.size_bytes
    )
    yield families.gauge(
        "search_results_cache_items_count", "Answers in the search results cache.", len(cache)
    )
    yield families.counter(
        "search_results_cache_requests",
        "Lookups in the search results cache.",
        (),
        {(): cache.requests},
    )
    yield families.counter(
        "search_results_cache_hits",
        "Lookups in the search results cache that found an answer.",
        (),
        {(): cache.hits},
    )
