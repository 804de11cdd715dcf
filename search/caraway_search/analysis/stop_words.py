"""Knows the words of a language that a query is not about, such as "the" and "how"."""

from functools import lru_cache
from pathlib import Path

from caraway_search.analysis.scripts import fold

_LISTS = Path(__file__).with_name("stop_words.txt")


def is_stop_word(folded: str, language: str) -> bool:
    """True if a folded word is one of the stop words; a language without a list has none."""
    return folded in _words(language)


@lru_cache(maxsize=16)
def _words(language: str) -> frozenset[str]:
    _, _, rest = _LISTS.read_text("utf-8").partition(f"\n[{language}]\n")
    return frozenset(map(fold, rest.partition("\n[")[0].split()))
