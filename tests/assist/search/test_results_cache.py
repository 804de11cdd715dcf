"""The cache of search results, and the entries that a change of the manifest drops."""

from caraway_assist.search.requests import SearchRequest
from caraway_assist.search.results_cache import SearchResultsCache
from caraway_core.concurrency.answer_cache import CacheSettings
from caraway_core.ids import PUBLIC, CatalogVersion


def test_results_from_before_a_clear_are_not_kept() -> None:
    cache = SearchResultsCache(CacheSettings(), lambda: 0.0)
    key = PUBLIC, CatalogVersion(1), SearchRequest("text", ())
    cache.put(key, b"old", cache.clears)
    assert cache.get(key) == b"old"
    since = cache.clears
    cache.clear()
    assert (cache.get(key), cache.size_bytes) == (None, 0)
    cache.put(key, b"late", since)
    assert key not in cache
    cache.put(key, b"new", cache.clears)
    assert cache.get(key) == b"new"
