"""Finds the best rows of alternatives without scoring all rows that have a common term.

Most queries are a few words, of which one is in most rows and says little. Once the rows with the
rarer terms are scored, no row that has only the others may reach the best of them. Then the others
are looked up for those rows alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from caraway_search.queries.tree import Group, Occurrence, QueryNode, QueryTerm
from caraway_search.text.postings import TermPostings
from caraway_search.text.scoring import ScoredColumn

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]
_ROUNDING = 1 - 1e-9
"""Sums in another order differ by less."""


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Some rows, ascending, with their scores."""

    rows: Numbers
    scores: Floats


@dataclass(frozen=True, slots=True)
class _Term:
    """A term in a column: its rows, its IDF, and the largest score that it can add."""

    column: ScoredColumn
    postings: TermPostings
    idf: float
    most: float

    def __len__(self) -> int:
        return len(self.postings.rows)

    def added(self, rows: Numbers) -> Floats:
        """Return the scores that the term adds to some rows, which are ascending."""
        own = self.postings.rows
        if not len(own):
            return np.zeros(len(rows))
        # In one type, or the longer array is copied.
        places = np.searchsorted(own, rows.astype(own.dtype))
        places[places == len(own)] = 0
        has = own[places] == rows
        added = np.zeros(len(rows))
        places = places[has]
        postings = TermPostings(own[places], self.postings.counts[places])
        added[has] = self.column.scores(postings, self.idf)
        return added


def candidates(
    query: QueryNode,
    columns: Mapping[str, ScoredColumn],
    row_count: int,
    limit: int,
    mask: Flags | None,
) -> ScoredRows | None:
    """Return a superset of the best `limit` rows and their ties; None if that may be all rows.

    Only rows of the mask count.
    """
    clauses = _alternatives(query, columns)
    if clauses is None or limit <= 0:
        return None
    terms = sorted((term for clause in clauses for term in clause), key=len)
    # The largest sum of scores of each term and all after it, and the number of their rows.
    rest = [*accumulate((term.most for term in reversed(terms)), initial=0.0)][::-1]
    left = [*accumulate(map(len, reversed(terms)), initial=0)][::-1]
    sums = np.zeros(row_count)
    seen: list[Numbers] = []
    for number, term in enumerate(terms[:-1]):
        seen.append(_add(term, sums, mask))
        count = sum(map(len, seen))
        if count < limit or left[number + 1] < count:
            continue
        rows = np.concatenate(seen)
        least = -np.partition(-sums[rows], limit - 1)[limit - 1] * _ROUNDING
        if rest[number + 1] < least:
            rows = np.sort(rows[sums[rows] + rest[number + 1] >= least])
            # A score that is too small for a number leaves its row as if it were new.
            rows = rows[np.append(True, rows[1:] != rows[:-1])] if len(rows) else rows
            return ScoredRows(rows, _scores(clauses, rows))
    return None


def _alternatives(
    query: QueryNode, columns: Mapping[str, ScoredColumn]
) -> Sequence[Sequence[_Term]] | None:
    """Return the terms of each clause, in the order in which they are scored; None if there is
    more than alternatives.
    """
    if not isinstance(query, Group) or len(query.clauses) * len(columns) < 2:
        return None
    nodes = [each.node for each in query.clauses]
    is_simple = all(each.occurrence is Occurrence.SHOULD for each in query.clauses)
    terms = [each for each in nodes if isinstance(each, QueryTerm)]
    if not is_simple or len(terms) < len(nodes):
        return None
    return [[*_terms(each, columns)] for each in terms]


def _terms(node: QueryTerm, columns: Mapping[str, ScoredColumn]) -> Iterator[_Term]:
    for column in columns.values():
        postings, idf = column.postings_of(node)
        yield _Term(column, postings, idf, column.most(postings, idf))


def _add(term: _Term, sums: Floats, mask: Flags | None) -> Numbers:
    """Add what a term adds, and return the rows that had nothing before."""
    rows = term.postings.rows.astype(np.int64)
    scores = term.column.scores(term.postings, term.idf)
    if mask is not None:
        wanted = mask[rows]
        rows, scores = rows[wanted], scores[wanted]
    before = sums[rows]
    sums[rows] = before + scores
    new: Numbers = rows[before == 0]
    return new


def _scores(clauses: Sequence[Sequence[_Term]], rows: Numbers) -> Floats:
    """The scores of some rows, summed as `scoring` does."""
    scores = np.zeros(len(rows))
    for clause in clauses:
        part = np.zeros(len(rows))
        for term in clause:
            part += term.added(rows)
        scores += part
    return scores
