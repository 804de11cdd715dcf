"""Matrices one below the other are read as one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_search.vectors.stacked import StackedVectors


def stacked(heights: list[int]) -> tuple[StackedVectors, np.ndarray]:
    whole = np.arange(3 * sum(heights), dtype=np.float32).reshape(-1, 3)
    cuts = np.cumsum([0, *heights])
    parts = [
        StackedVectors((whole[first : first + height],))
        for first, height in zip(cuts, heights, strict=False)
    ]
    return StackedVectors.from_stacks(parts), whole


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.data())
def test_it_is_read_as_one_matrix(heights: list[int], data: st.DataObject) -> None:
    vectors, whole = stacked(heights)
    count = len(whole)
    assert len(vectors) == count
    places = st.lists(st.integers(0, count - 1), max_size=9) if count else st.just([])
    numbers = np.array(data.draw(places), np.int64)
    assert vectors.copy_vectors(numbers).tolist() == whole[numbers].tolist()
    query = np.array([1.0, -2.0, 0.5], np.float32)
    assert vectors.dots(query).tolist() == (whole @ query).tolist()
    flags = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), np.bool_)
    size = data.draw(st.integers(1, 4))
    blocks = list(vectors.blocks(flags, size))
    assert [n for _, numbers in blocks for n in numbers] == np.flatnonzero(flags).tolist()
    for block, numbers in blocks:
        assert 0 < len(numbers) <= size and block.tolist() == whole[numbers].tolist()


def test_matrices_are_not_copied() -> None:
    vectors, whole = stacked([2, 0, 3])
    assert [np.shares_memory(each, whole) for each in vectors.matrices] == [True, False, True]
    for numbers in ([5], [4, 5], [-1], [1, -1]):
        with pytest.raises(IndexError):
            vectors.copy_vectors(np.array(numbers))
