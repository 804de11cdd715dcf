"""Vectors are read where they are, and copied only where rows lack one."""

import numpy as np
import pyarrow as pa
import pytest

from caraway_search.vectors.reading import ColumnVectors
from caraway_search.vectors.segment import VectorIndexSpec, VectorSegment

ROWS = [[float(n), 1.0, 2.0] for n in range(40)]
FIXED, ANY = pa.list_(pa.float32(), 3), pa.list_(pa.float32())


@pytest.mark.parametrize("kind", [FIXED, ANY, pa.large_list(pa.float32())])
def test_vectors_of_all_rows_are_not_copied(kind: pa.DataType) -> None:
    column = pa.array(ROWS, kind).slice(5, 30)
    vectors = ColumnVectors.read(column, 3)
    (matrix,) = vectors.matrix.matrices
    assert matrix.tolist() == ROWS[5:35]
    assert np.shares_memory(matrix, column.flatten().to_numpy())
    assert VectorSegment.build(VectorIndexSpec(3), column).nbytes == 30 * 9


@pytest.mark.parametrize("missing", [None, [], [1.0, 2.0]])
def test_rows_without_a_vector_have_a_place(missing: list[float] | None) -> None:
    column = pa.array([ROWS[0], missing, ROWS[2]], ANY)
    vectors = ColumnVectors.read(column, 3)
    assert vectors.usable.tolist() == [True, False, True]
    assert vectors.matrix.copy_vectors(np.array([0, 2])).tolist() == [ROWS[0], ROWS[2]]
    assert vectors.left_out == (missing is not None)
    # The copy counts as memory of the segment.
    assert VectorSegment.build(VectorIndexSpec(3), column).nbytes == 3 * 9 + 3 * 3 * 4


@pytest.mark.parametrize("number", [pa.float64(), pa.float16()])
def test_other_floats_are_compared_as_those_of_32_bits(number: pa.DataType) -> None:
    """As statements compare them; the copy counts as memory of the segment."""
    rows = [[0.1, 1 / 3, 2.0], [1e4, 0.0, -1.0]]
    for kind in (pa.list_(number, 3), pa.list_(number)):
        column = pa.array(rows, kind)
        vectors = ColumnVectors.read(column, 3)
        (matrix,) = vectors.matrix.matrices
        assert matrix.dtype == np.float32
        assert matrix.tolist() == column.cast(pa.list_(pa.float32())).to_pylist()
        assert VectorSegment.build(VectorIndexSpec(3), column).nbytes == 2 * 9 + 2 * 3 * 4


def test_numbers_beyond_32_bits_are_left_out() -> None:
    vectors = ColumnVectors.read(pa.array([[1e300, 1.0], [1.0, 1.0]]), 2)
    assert vectors.usable.tolist() == [False, True]
    assert vectors.left_out == 1
