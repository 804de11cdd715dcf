"""The built-in reranker: how well the words of a query are covered by each of a few texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caraway_search.queries.parsing import MOST_LEAVES
from caraway_search.queries.tree import Clause, Group, Occurrence, Phrase, QueryTerm
from caraway_search.text.segment import TextIndexSpec, TextSegment

_COLUMN = "text"
_WORDS, _COVERAGE, _NEIGHBOURS = 0.6, 0.25, 0.15
"""The parts of a score: BM25, how many of the words are there, how many of them side by side."""


@dataclass(frozen=True, slots=True)
class LexicalReranker:
    """Scores from 0 to 1 by words alone, with no model. The given texts are all it knows."""

    language: str = "english"

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """A score for each text, by its words, their rarity among the texts, and their order."""
        spec = TextIndexSpec({_COLUMN: 1.0}, self.language)
        terms = _terms(spec, query)
        if not terms or not texts:
            return [0.0] * len(texts)
        segment = TextSegment.build(spec, {_COLUMN: pa.array(texts, pa.string())})
        words = _group([QueryTerm(term) for term in dict.fromkeys(terms)])
        pairs = [Phrase(pair) for pair in dict.fromkeys(pairwise(terms))]
        total = _WORDS * _shares(segment, words) + _COVERAGE * _found_share(segment, words)
        if pairs:
            total += _NEIGHBOURS * _found_share(segment, _group(pairs))
        return [float(score) for score in total]


def _terms(spec: TextIndexSpec, query: str) -> list[str]:
    analyzer = spec.analyzer
    words = analyzer.words(query)[:MOST_LEAVES]
    pieces = [piece for word in words for piece in analyzer.pieces(word)]
    return [term for piece in pieces for term in analyzer.terms(piece)][:MOST_LEAVES]


def _group(leaves: Sequence[QueryTerm | Phrase]) -> Group:
    return Group(tuple(Clause(Occurrence.SHOULD, leaf) for leaf in leaves))


def _shares(segment: TextSegment, query: Group) -> NDArray[np.float64]:
    """BM25, as a part of the highest score among the texts."""
    scores = segment.scores(query, segment.statistics(query)).scores
    highest = scores.max(initial=0.0)
    return scores / highest if highest > 0 else scores


def _found_share(segment: TextSegment, query: Group) -> NDArray[np.float64]:
    """The part of the leaves that each text has."""
    statistics = segment.statistics(query)
    flags = [segment.scores(clause.node, statistics).found for clause in query.clauses]
    share: NDArray[np.float64] = np.mean(flags, axis=0)
    return share
