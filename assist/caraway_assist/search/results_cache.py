"""Keeps recent answers of searches for each principal, limited in bytes and age."""

from collections.abc import Callable
from dataclasses import dataclass

from caraway_assist.search.requests import SearchRequest
from caraway_core.concurrency.quotas import Quota, QuotaLimits
from caraway_core.ids import CatalogVersion, PrincipalId
from caraway_scheduler.queries.cache import CacheSettings

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
    """An LRU cache of encoded results. It is not thread-safe: one event loop uses it.

    Where it is full, the principal with most of it makes room.
    """

    def __init__(self, settings: CacheSettings, clock: Callable[[], float]) -> None:
        self.settings = settings
        self.requests = 0
        self.hits = 0
        self.clears = 0
        self.quota: Quota[SearchKey] = Quota(
            "cached searches", QuotaLimits(most_bytes=settings.max_size_bytes)
        )
        self._clock = clock
        self._kept: dict[SearchKey, KeptSearch] = {}

    @property
    def size_bytes(self) -> int:
        """The size of all kept results."""
        return self.quota.size_bytes

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
        self.quota.use(key)
        self.hits += 1
        return found.results

    def put(self, key: SearchKey, results: bytes, since: int = 0) -> None:
        """Keep results, unless they are too large or older than the last clear."""
        size = _size(key, results)
        if size > self.settings.max_size_bytes // _LARGEST_SHARE or since != self.clears:
            return
        for gone in self.quota.add(key[0], key, size):
            del self._kept[gone]
        self._kept[key] = KeptSearch(results, self._clock() + self.settings.ttl_s)

    def clear(self) -> None:
        """Drop all results."""
        self.clears += 1
        self.quota.clear()
        self._kept.clear()

    def _drop(self, key: SearchKey) -> None:
        self._kept.pop(key, None)
        self.quota.drop(key)


def _size(key: SearchKey, results: bytes) -> int:
    request = key[2]
    return _ENTRY_OVERHEAD + len(results) + len(request.text) + len(request.where or "")
