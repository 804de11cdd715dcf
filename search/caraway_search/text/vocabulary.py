"""The sorted terms of one column, read in place from one run of bytes, and edits between terms."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

_BLOCK = 32
"""One term of each block is kept as an object, which is faster to compare."""


@dataclass(frozen=True)
class _SameLength:
    """The terms of one length: their numbers and their characters, see `edits.letters`."""

    numbers: NDArray[np.int64]
    letters: NDArray[np.uint32]


@dataclass(frozen=True)
class Vocabulary(Sequence[bytes]):
    """Terms in UTF-8, in the order of their bytes. Term `n` ends before `ends[n]`."""

    contents: NDArray[np.uint8]
    ends: NDArray[np.integer[Any]]

    @classmethod
    def from_terms(cls, terms: Any) -> Self:
        """Terms that are sorted already: a large binary array of Arrow."""
        if len(terms) == 0:
            return cls(np.zeros(0, np.uint8), np.zeros(0, np.int64))
        _, ends, contents = terms.buffers()
        numbers = np.frombuffer(ends, np.int64)[terms.offset : terms.offset + len(terms) + 1]
        first = numbers[0]
        return cls(np.frombuffer(contents, np.uint8)[first : numbers[-1]], numbers[1:] - first)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: Any) -> Any:
        start = self.ends[number - 1] if number > 0 else 0
        return self.contents[start : self.ends[number]].tobytes()

    def find(self, term: str) -> int | None:
        """The number of a term."""
        sought = term.encode()
        place = self._place(sought)
        return place if place < len(self) and self[place] == sought else None

    def starting(self, prefix: str) -> range:
        """The numbers of the terms with a prefix."""
        sought = prefix.encode()
        # No byte of UTF-8 is 0xFF, so this is after every term with the prefix.
        return range(self._place(sought), self._place(sought + b"\xff"))

    def near(self, term: str, distance: int) -> NDArray[np.int64]:
        """The numbers of the terms at exactly this distance from a term, ascending."""
        array1_ds = [np.zeros(0, np.int64)]
        for length in range(len(term) - distance, len(term) + distance + 1):
            if (same := self._by_length.get(length)) is not None:
                away = distances(term, same.letters, distance)
                array1_ds.append(same.numbers[away == distance])
        return np.sort(np.concatenate(array1_ds))

    def _place(self, sought: bytes) -> int:
        block = bisect_left(self._landmarks, sought)
        first = max(block - 1, 0) * _BLOCK
        return bisect_left(self, sought, first, min(block * _BLOCK, len(self)))

    @cached_property
    def _landmarks(self) -> list[bytes]:
        return [self[number] for number in range(0, len(self), _BLOCK)]

    @cached_property
    def _by_length(self) -> dict[int, _SameLength]:
        numbers = defaultdict(list)
        terms = [self[number].decode() for number in range(len(self))]
        for number, term in enumerate(terms):
            numbers[len(term)].append(number)
        return {
            length: _SameLength(np.array(ns), letters([terms[n] for n in ns], length))
            for length, ns in numbers.items()
        }


def letters(terms: Sequence[str], length: int) -> NDArray[np.uint32]:
    """The characters of terms of one length: first those of all terms, then the second ones."""
    if length == 0:
        return np.zeros((0, len(terms)), np.uint32)
    table = np.array(terms, f"<U{length}").view(np.uint32).reshape(len(terms), length)
    return np.ascontiguousarray(table.T)


def distances(term: str, others: NDArray[np.uint32], most: int) -> NDArray[np.int8]:
    """The least edits from a term to each of `letters`; above `most` a number only says "more".

    An edit inserts, removes or changes a character, or swaps two neighbours. Rows of the usual
    table are computed for all terms together, and only near its diagonal.
    """
    width, count = others.shape
    far = np.full(count, most + 1, np.int8)
    row = [np.full(count, min(j, most + 1), np.int8) for j in range(width + 1)]
    before = row
    for i, letter in enumerate(term, 1):
        two_before, before = before, row
        row = [far] * (width + 1)
        row[0] = np.full(count, min(i, most + 1), np.int8)
        for j in range(max(1, i - most), min(width, i + most) + 1):
            best = np.minimum(before[j], row[j - 1]) + np.int8(1)
            best = np.minimum(best, before[j - 1] + (others[j - 1] != ord(letter)))
            if i > 1 and j > 1:
                swapped = (others[j - 2] == ord(letter)) & (others[j - 1] == ord(term[i - 2]))
                best = np.where(swapped, np.minimum(best, two_before[j - 2] + np.int8(1)), best)
            row[j] = np.minimum(best, far)
    return row[width]
