"""Postings of one column: for each term its rows, how often it is there, and where."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from caraway_search.analysis.analyzer import Analyzer, Tokens
from caraway_search.queries.tree import CountedTerm
from caraway_search.text.vocabulary import Vocabulary

Ints = NDArray[np.integer[Any]]
K1 = 1.2
"""`k1` of BM25: with a lower value, repetitions of a term count less."""
B = 0.75
"""`b` of BM25: with a higher value, the length of a text counts more."""
_MOST_EXPANDED = 32
"""Prefixes and fuzzy terms whose rows are kept: a search needs them twice."""


@dataclass(frozen=True, slots=True)
class TermPostings:
    """The rows of one term, ascending, and how often the term is in each."""

    rows: Ints
    counts: Ints

    @classmethod
    def none(cls) -> Self:
        """The postings of a term that no row has."""
        return cls(np.zeros(0, np.int32), np.zeros(0, np.int32))


@dataclass(frozen=True)
class Postings:
    """The index of one column. `filled` marks the rows that are not NULL; those have a length.

    Term `n` has the rows `rows[starts[n]:starts[n + 1]]` and, for each, a number in `counts`. Its
    positions begin at `position_starts[n]`; they are in the order of rows, then of the text.
    """

    vocabulary: Vocabulary
    starts: Ints
    rows: Ints
    counts: Ints
    position_starts: Ints
    positions: Ints
    lengths: Ints
    filled: NDArray[np.bool_]
    _divisors: dict[float, NDArray[np.float64]] = field(default_factory=dict, compare=False)
    _expanded: dict[CountedTerm, TermPostings] = field(default_factory=dict, compare=False)

    @classmethod
    def build(cls, texts: Any, analyzer: Analyzer) -> Self:
        """Index a string array of Arrow.

        Arrays of tokens are large, so they are as narrow as they can be, and go when they are used.
        """
        tokens = analyzer.tokens(texts)
        counts = tokens.counts
        vocabulary, ids = _in_order(tokens)
        del tokens
        order = _sorting(ids)
        sorted_ids = ids[order]
        del ids
        rows = np.repeat(np.arange(len(counts), dtype=np.int32), counts)[order]
        first_of_row = np.cumsum(counts, dtype=np.int64) - counts
        order -= first_of_row.astype(order.dtype)[rows]
        positions = _narrow(order)
        del order
        is_first = np.ones(len(rows), np.bool_)
        is_first[1:] = (sorted_ids[1:] != sorted_ids[:-1]) | (rows[1:] != rows[:-1])
        firsts = np.flatnonzero(is_first)
        terms = np.arange(len(vocabulary) + 1, dtype=sorted_ids.dtype)
        return cls(
            vocabulary,
            np.searchsorted(sorted_ids[firsts], terms),
            _narrow(rows[firsts]),
            _narrow(np.diff(firsts, append=len(rows))),
            np.searchsorted(sorted_ids, terms),
            positions,
            _narrow(counts),
            np.asarray(texts.is_valid()),
        )

    def prepare(self) -> None:
        """Do now what the first search would have to."""
        _ = self.token_count, self._least_length
        self.vocabulary.find("")

    @cached_property
    def token_count(self) -> int:
        """The tokens of all rows."""
        return int(self.lengths.sum(dtype=np.int64))

    @cached_property
    def _least_length(self) -> int:
        filled = self.lengths[self.lengths > 0]
        return int(filled.min(initial=np.iinfo(filled.dtype).max)) if len(filled) else 0

    def postings_of(self, sought: CountedTerm) -> TermPostings:
        """The rows of a term, or of all terms with a prefix or at a distance, taken as one."""
        if sought.is_prefix or sought.edits:
            return self._several(sought)
        term = self.vocabulary.find(sought.term)
        return TermPostings.none() if term is None else self._slice(term, term + 1)

    def places(self, term: str) -> NDArray[np.int64]:
        """Where a term is, as numbers that count by 1 within a row and never touch the next row."""
        number = self.vocabulary.find(term)
        if number is None:
            return np.zeros(0, np.int64)
        postings = self._slice(number, number + 1)
        begin, end = self.position_starts[number], self.position_starts[number + 1]
        rows = np.repeat(postings.rows.astype(np.int64), postings.counts)
        return (rows << 32) + self.positions[begin:end]

    def _several(self, sought: CountedTerm) -> TermPostings:
        kept = self._expanded.get(sought)
        if kept is None:
            if len(self._expanded) >= _MOST_EXPANDED:
                self._expanded.clear()
            kept = self._expanded[sought] = self._joined(list(self._parts(sought)))
        return kept

    def _parts(self, sought: CountedTerm) -> Iterator[TermPostings]:
        if not sought.is_prefix:
            for number in self.vocabulary.near(sought.term, sought.edits):
                yield self._slice(number, number + 1)
            return
        numbers = self.vocabulary.starting(sought.term)
        if len(numbers) > 0:
            yield self._slice(numbers.start, numbers.stop)
        stem = self.vocabulary.find(sought.stem)
        if stem is not None and stem not in numbers:
            yield self._slice(stem, stem + 1)

    def _joined(self, parts: list[TermPostings]) -> TermPostings:
        if not parts:
            return TermPostings.none()
        rows = np.concatenate([part.rows for part in parts])
        counts = np.concatenate([part.counts for part in parts])
        # The sums are whole numbers far below 2^53, so they are exact.
        sums = np.bincount(rows, counts, minlength=len(self.lengths))
        array1_d = np.flatnonzero(sums)
        return TermPostings(array1_d, sums[array1_d].astype(np.int64))

    def _slice(self, begin: int, end: int) -> TermPostings:
        part = slice(int(self.starts[begin]), int(self.starts[end]))
        return TermPostings(self.rows[part], self.counts[part])

    def divisors(self, average_length: float) -> NDArray[np.float64]:
        """Return the addend to a term's count in the denominator of BM25, for each row.

        Only a few averages are kept: they change with the version of the table.
        """
        kept = self._divisors.get(average_length)
        if kept is None:
            kept = K1 * ((1 - B) + B * (self.lengths / average_length))
            if len(self._divisors) >= 2:
                self._divisors.clear()
            self._divisors[average_length] = kept
        return kept

    def least_divisor(self, average_length: float) -> float:
        """The least of `divisors` of all rows with a text."""
        return K1 * ((1 - B) + B * (self._least_length / average_length))

    def arrays(self, prefix: str) -> Iterator[tuple[str, NDArray[Any]]]:
        """The arrays to serialise, each under a name with a prefix."""
        yield prefix + "terms", self.vocabulary.contents
        yield prefix + "term_ends", self.vocabulary.ends
        for name in _ARRAYS:
            yield prefix + name, getattr(self, name)
        yield prefix + "filled", np.packbits(self.filled)

    @classmethod
    def opened(cls, arrays: Any, prefix: str) -> Self:
        """The postings over arrays of `arrays`, without copies."""
        lengths = arrays[prefix + "lengths"]
        return cls(
            Vocabulary(arrays[prefix + "terms"], arrays[prefix + "term_ends"]),
            **{name: arrays[prefix + name] for name in _ARRAYS},
            filled=np.unpackbits(arrays[prefix + "filled"], count=len(lengths)).astype(np.bool_),
        )


_ARRAYS = ("starts", "rows", "counts", "position_starts", "positions", "lengths")


def _in_order(tokens: Tokens) -> tuple[Vocabulary, NDArray[np.int32]]:
    # Sorted by Arrow, which lets other threads run: searches must not wait for it.
    encoded = tokens.terms.cast(pa.large_binary())
    order = pc.sort_indices(encoded)
    ranks = np.empty(len(order), np.int32)
    ranks[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    return Vocabulary.from_terms(encoded.take(order)), ranks[tokens.ids]


def _sorting(ids: NDArray[np.int32]) -> NDArray[np.integer[Any]]:
    """The places of tokens, by their terms and then in order."""
    if len(ids) >= 1 << 32:
        return np.argsort(ids, kind="stable")
    # Both in one number are sorted in place; the order alone would take as much again.
    keys = ids.astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= np.arange(len(ids), dtype=np.uint32)
    keys.sort()
    return keys.astype(np.uint32)


def _narrow(values: NDArray[np.integer[Any]]) -> Ints:
    largest = int(values.max(initial=0))
    return values.astype(np.min_scalar_type(largest))
