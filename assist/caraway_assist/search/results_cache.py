"""Caches recent results of searches, encoded, for each principal."""

from caraway_assist.search.requests import SearchRequest
from caraway_core.concurrency.answer_cache import AnswerCache
from caraway_core.ids import CatalogVersion, PrincipalId

SearchKey = tuple[PrincipalId, CatalogVersion, SearchRequest]
_ENTRY_OVERHEAD = 512


class SearchResultsCache(AnswerCache[SearchKey, bytes]):
    """The cache of the results of searches."""

    WHAT = "cached searches"

    def put(self, key: SearchKey, results: bytes, since: int = 0) -> None:
        """Cache results as `add` does."""
        principal, _version, request = key
        texts = len(request.text) + len(request.where or "")
        self.add(principal, key, results, _ENTRY_OVERHEAD + len(results) + texts, since)
