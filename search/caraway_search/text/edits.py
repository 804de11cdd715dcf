"""Edit distances of one term from many of one length."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


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
