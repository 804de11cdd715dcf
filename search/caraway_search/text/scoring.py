"""Scores of the rows of a segment by BM25.

A score is a sum in the order of the query, then of the columns, in 64-bit floats and row by row. So
it has the same bits whatever else is in the segment.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caraway_search.queries.tree import (
    CountedTerm,
    Fuzzy,
    Group,
    Leaf,
    Occurrence,
    Phrase,
    QueryNode,
    QueryTerm,
    counted,
)
from caraway_search.text.postings import K1, Postings, TermPostings
from caraway_search.text.statistics import ColumnStatistics, TextStatistics

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Scored:
    """Which rows a query finds, and their scores; the score of any other row is 0."""

    found: Flags
    scores: Floats


@dataclass(frozen=True, slots=True)
class ScoredColumn:
    """A column of a segment, with the weight of its scores."""

    postings: Postings
    statistics: ColumnStatistics
    boost: float

    def add(self, leaf: Leaf, into: Scored) -> None:
        """Add the scores of a leaf in this column."""
        match leaf:
            case Phrase():
                idf = sum(self._idf(each) for each in counted(leaf))
                self._add(self._phrase(leaf), idf, into)
            case Fuzzy():
                self._add_fuzzy(leaf, into)
            case _:
                (sought,) = counted(leaf)
                self._add(self.postings.postings_of(sought), self._idf(sought), into)

    def postings_of(self, term: QueryTerm) -> tuple[TermPostings, float]:
        """Return the postings of a term and its IDF."""
        (sought,) = counted(term)
        return self.postings.postings_of(sought), self._idf(sought)

    def scores(self, found: TermPostings, idf: float) -> Floats:
        """Return the score that a term adds to each of its rows."""
        if len(found.rows) == 0:
            return np.zeros(0)
        divisors = self.postings.divisors(self.statistics.average_length)[found.rows]
        scores: Floats = (self.boost * idf) * (found.counts * (K1 + 1) / (found.counts + divisors))
        return scores

    def most(self, found: TermPostings, idf: float) -> float:
        """Return the largest score that a term can add to a row."""
        count = float(found.counts.max(initial=0))
        least = self.postings.least_divisor(self.statistics.average_length)
        return self.boost * idf * count * (K1 + 1) / (count + least)

    def _add(self, postings: TermPostings, idf: float, into: Scored) -> None:
        rows = postings.rows.astype(np.intp)  # once, and not at each use
        into.scores[rows] += self.scores(postings, idf)
        into.found[rows] = True

    def _add_fuzzy(self, leaf: Fuzzy, into: Scored) -> None:
        """A row has the best of its scores at each distance, which count less the further off."""
        best = np.zeros_like(into.scores)
        for sought in counted(leaf):
            postings = self.postings.postings_of(sought)
            scores = self.scores(postings, self._idf(sought)) / (1 + sought.edits)
            best[postings.rows] = np.maximum(best[postings.rows], scores)
            into.found[postings.rows] = True
        into.scores[:] += best

    def _idf(self, sought: CountedTerm) -> float:
        frequency = self.statistics.frequencies.get(sought, 0)
        others = max(self.statistics.rows - frequency, 0)
        return math.log(1 + (others + 0.5) / (frequency + 0.5))

    def _phrase(self, phrase: Phrase) -> TermPostings:
        starts = [self.postings.places(term) - n for n, term in enumerate(phrase.terms)]
        shared: NDArray[Any] = reduce(_shared, sorted(starts, key=len))
        rows, counts = np.unique(shared >> 32, return_counts=True)
        return TermPostings(rows, counts)


def score(query: QueryNode, columns: Mapping[str, ScoredColumn], row_count: int) -> Scored:
    """Score all rows of a segment."""
    result = Scored(np.zeros(row_count, np.bool_), np.zeros(row_count))
    if isinstance(query, Group):
        _add_group(query, columns, result)
    else:
        for column in columns.values():
            column.add(query, result)
    return result


def _add_group(group: Group, columns: Mapping[str, ScoredColumn], result: Scored) -> None:
    needs: list[Flags] = []
    for clause in group.clauses:
        is_wanted = clause.occurrence is Occurrence.SHOULD
        if is_wanted and len(columns) == 1 and isinstance(clause.node, QueryTerm):
            for column in columns.values():
                column.add(clause.node, result)
            continue
        part = score(clause.node, columns, len(result.scores))
        if clause.occurrence is Occurrence.MUST_NOT:
            needs.append(~part.found)
            continue
        result.scores[:] += part.scores
        result.found[:] |= part.found
        if clause.occurrence is Occurrence.MUST:
            needs.append(part.found)
    for need in needs:
        result.found[:] &= need
    if needs:
        result.scores[~result.found] = 0


def columns_of(
    postings: Mapping[str, Postings], boosts: Mapping[str, float], statistics: TextStatistics
) -> dict[str, ScoredColumn]:
    """Return the columns of a segment with the statistics of the table."""
    none = ColumnStatistics()
    return {
        name: ScoredColumn(each, statistics.columns.get(name, none), boosts[name])
        for name, each in postings.items()
    }


def _shared(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.intersect1d(left, right, assume_unique=True)
