"""The built-in reranker under a name of the manifest."""

from collections.abc import Sequence

from caraway_search.ranking.lexical import LexicalReranker


class WordReranker:
    """Implements `LoadedReranker` by words in common."""

    def __init__(self) -> None:
        self._lexical = LexicalReranker()

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return self._lexical.scores(query, texts)

    def close(self) -> None:
        """Nothing is held."""
