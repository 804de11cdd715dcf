"""BM25 as in a textbook: no arrays, no index. What the segments are compared with."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import pyarrow as pa

from caraway_search.analysis.analyzer import Analyzer
from caraway_search.queries.tree import (
    Fuzzy,
    Group,
    Leaf,
    Occurrence,
    Phrase,
    Prefix,
    QueryNode,
    QueryTerm,
)

Terms = list[str]


def edits(left: str, right: str) -> int:
    """Insertions, removals, changes and swaps of neighbours between two words."""
    table = [
        [i + j if i * j == 0 else 0 for j in range(len(right) + 1)] for i in range(len(left) + 1)
    ]
    for i in range(1, len(left) + 1):
        for j in range(1, len(right) + 1):
            table[i][j] = min(
                table[i - 1][j] + 1,
                table[i][j - 1] + 1,
                table[i - 1][j - 1] + (left[i - 1] != right[j - 1]),
            )
            if i > 1 and j > 1 and left[i - 2 : i] == right[j - 2 : j][::-1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]


@dataclass(eq=False)
class Oracle:
    """A table of texts, of which `live` are there; None is NULL."""

    boosts: Mapping[str, float]
    texts: Mapping[str, Sequence[str | None]]
    live: Sequence[bool]
    analyzer: Analyzer
    terms: dict[str, list[Terms | None]] = field(init=False)

    def __post_init__(self) -> None:
        self.terms = {
            name: [None if text is None else self._analysed(text) for text in self.texts[name]]
            for name in self.boosts
        }

    def _analysed(self, text: str) -> Terms:
        tokens = self.analyzer.tokens(pa.array([text]))
        found: Terms = tokens.terms.take(pa.array(tokens.ids)).to_pylist()
        return found

    def scores(self, query: QueryNode) -> dict[int, float]:
        """The score of each live row that a query finds."""
        found = {row: self._score(query, row) for row in range(len(self.live)) if self.live[row]}
        return {row: score for row, score in found.items() if score is not None}

    def _score(self, node: QueryNode, row: int) -> float | None:
        if not isinstance(node, Group):
            total, is_found = 0.0, False
            for column in self.boosts:
                score = self._leaf(node, column, row)
                if score is not None:
                    total, is_found = total + score, True
            return total if is_found else None
        total, is_any = 0.0, False
        for clause in node.clauses:
            score = self._score(clause.node, row)
            if clause.occurrence is Occurrence.MUST_NOT:
                if score is not None:
                    return None
                continue
            if score is None and clause.occurrence is Occurrence.MUST:
                return None
            if score is not None:
                total, is_any = total + score, True
        return total if is_any else None

    @cache  # noqa: B019
    def _near(self, column: str, term: str, distance: int) -> set[str]:
        return {each for each in self._vocabulary(column) if edits(term, each) == distance}

    def _leaf(self, leaf: Leaf, column: str, row: int) -> float | None:
        terms = self.terms[column][row] or []
        match leaf:
            case QueryTerm():
                return self._bm25(
                    column, row, terms.count(leaf.term), self._idf(column, {leaf.term})
                )
            case Prefix():
                wanted = {t for t in self._vocabulary(column) if t.startswith(leaf.prefix)} | {
                    leaf.stem
                }
                return self._bm25(
                    column, row, self._count(terms, wanted), self._idf(column, wanted)
                )
            case Phrase():
                length = len(leaf.terms)
                count = sum(
                    tuple(terms[n : n + length]) == leaf.terms
                    for n in range(len(terms) - length + 1)
                )
                idf = sum(self._idf(column, {term}) for term in leaf.terms)
                return self._bm25(column, row, count, idf)
            case Fuzzy():
                best = None
                for distance in range(leaf.edits + 1):
                    wanted = self._near(column, leaf.term, distance)
                    count, idf = self._count(terms, wanted), self._idf(column, wanted)
                    score = self._bm25(column, row, count, idf)
                    if score is not None:
                        best = max(best or 0.0, score / (1 + distance))
                return best

    def _count(self, terms: Terms, wanted: set[str]) -> int:
        return sum(count for term, count in Counter(terms).items() if term in wanted)

    @cache  # noqa: B019
    def _vocabulary(self, column: str) -> set[str]:
        return {term for terms in self.terms[column] for term in terms or []}

    @cache  # noqa: B019 - it lives as long as its test
    def _live_terms(self, column: str) -> list[set[str]]:
        pairs = zip(self.terms[column], self.live, strict=True)
        return [set(terms) for terms, is_live in pairs if is_live and terms is not None]

    @cache  # noqa: B019
    def _average_length(self, column: str) -> float:
        pairs = zip(self.terms[column], self.live, strict=True)
        lengths = [len(terms) for terms, is_live in pairs if is_live and terms is not None]
        return sum(lengths) / len(lengths)

    def _idf(self, column: str, wanted: set[str]) -> float:
        return self._idf_of(column, frozenset(wanted))

    @cache  # noqa: B019
    def _idf_of(self, column: str, wanted: frozenset[str]) -> float:
        rows = self._live_terms(column)
        frequency = sum(not wanted.isdisjoint(terms) for terms in rows)
        return math.log(1 + (len(rows) - frequency + 0.5) / (frequency + 0.5))

    def _bm25(self, column: str, row: int, count: int, idf: float) -> float | None:
        if count == 0:
            return None
        length = len(self.terms[column][row] or [])
        divisor = 1.2 * ((1 - 0.75) + 0.75 * (length / self._average_length(column)))
        return (self.boosts[column] * idf) * (count * (1.2 + 1) / (count + divisor))
