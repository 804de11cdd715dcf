"""Vectors of several arrays as one matrix, without a copy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.floating[Any]]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class StackedVectors:
    """Matrices one below the other, all of one type and with rows of one length."""

    matrices: tuple[Matrix, ...]

    @classmethod
    def from_stacks(cls, stacks: Sequence[Self]) -> Self:
        """Put the matrices of several below each other."""
        return cls(tuple(each for stack in stacks for each in stack.matrices))

    def __len__(self) -> int:
        return int(self._ends[-1])

    @property
    def dtype(self) -> Any:
        """The type of the numbers."""
        return self.matrices[0].dtype

    def copy_vectors(self, numbers: Numbers) -> Matrix:
        """Copy some vectors, in the order of their numbers in `numbers`."""
        if len(self.matrices) == 1:
            return self.matrices[0][numbers]
        taken = np.empty((len(numbers), self.matrices[0].shape[1]), self.dtype)
        order = None if np.all(numbers[1:] >= numbers[:-1]) else np.argsort(numbers, kind="stable")
        rising = numbers if order is None else numbers[order]
        if len(rising) and not 0 <= rising[0] <= rising[-1] < len(self):
            raise IndexError(f"there are {len(self)} vectors")
        first = 0
        for matrix, start, last in zip(
            self.matrices, self._starts, np.searchsorted(rising, self._ends), strict=True
        ):
            if last > first:
                # Without "clip" the rows are copied twice.
                wanted = rising[first:last] - start
                matrix.take(wanted, axis=0, out=taken[first:last], mode="clip")
            first = last
        if order is None:
            return taken
        given = np.empty_like(taken)
        given[order] = taken
        return given

    def dots(self, query: Matrix) -> Matrix:
        """The dot product of each vector with a query, in the precision of the vectors."""
        return np.concatenate([each @ query for each in self.matrices])

    def blocks(self, flags: NDArray[np.bool_], size: int) -> Iterator[tuple[Matrix, Numbers]]:
        """Yield the flagged vectors, at most `size` at a time, with their numbers."""
        chosen = np.flatnonzero(flags)
        for start in range(0, len(chosen), size):
            numbers = chosen[start : start + size]
            yield self.copy_vectors(numbers), numbers

    @cached_property
    def _ends(self) -> Numbers:
        return np.cumsum([len(each) for each in self.matrices])

    @cached_property
    def _starts(self) -> Numbers:
        starts: Numbers = self._ends - np.array([len(each) for each in self.matrices], np.int64)
        return starts
