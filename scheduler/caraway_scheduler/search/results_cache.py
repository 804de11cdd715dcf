"""Keeps recent answers of searches for each principal, limited in bytes and age."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from caraway_core.ids import CatalogVersion, PrincipalId
from caraway_scheduler.queries.cache import CacheSettings
from caraway_scheduler.search.requests import SearchRequest

SearchKey = tuple[PrincipalId, CatalogVersion, SearchRequest]
_LARGEST_SHARE = 8
"""Answers larger than an eighth of the cache are not kept, because they evict too much."""
_ENTRY_OVERHEAD = 512


@dataclass(frozen=True, slots=True)
class KeptSearch:
    """The results of a search, encoded."""

    results: bytes
    expires_at: float


class SearchResultsCache:
    """An LRU cache of encoded results. It is not thread-safe: one event loop uses it."""

    def __init__(self, settings: CacheSettings, clock: Callable[[], float]) -> None:
        self.settings = settings
        self.requests = 0
        self.hits = 0
        self.size_bytes = 0
        self.clears = 0
        self._clock = clock
        self._kept: OrderedDict[SearchKey, KeptSearch] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: SearchKey) -> bool:
        return key in self._kept

    def get(self, key: SearchKey) -> bytes | None:
        """Return valid results, or None, and count the request."""
        self.requests += 1
        found = self._kept.get(key)
        if found is None:
            return None
        if found.expires_at <= self._clock():
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        self.hits += 1
        return found.results

    def put(self, key: SearchKey, results: bytes, since: int = 0) -> None:
        """Keep results, unless they are too large or older than the last clear."""
        size = _size(key, results)
        if size > self.settings.max_size_bytes // _LARGEST_SHARE or since != self.clears:
            return
        self._drop(key)
        self._kept[key] = KeptSearch(results, self._clock() + self.settings.ttl_s)
        self.size_bytes += size
        while self.size_bytes > self.settings.max_size_bytes:
            self._drop(next(iter(self._kept)))

    def clear(self) -> None:
        """Drop all results."""
        self.clears += 1
        self.size_bytes = 0
        self._kept.clear()

    def _drop(self, key: SearchKey) -> None:
        if (found := self._kept.pop(key, None)) is not None:
            self.size_bytes -= _size(key, found.results)


def _size(key: SearchKey, results: bytes) -> int:
    request = key[2]
    return _ENTRY_OVERHEAD + len(results) + len(request.text) + len(request.where or "")
