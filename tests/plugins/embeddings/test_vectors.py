"""Rows of numbers as vectors: what providers may send, and bytes that are kept."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from caraway_core.errors import ModelError, ModelInputError
from caraway_plugins.embeddings import vectors


def test_bytes_are_read_again() -> None:
    made = vectors.to_arrow(np.array([[1, 2], [-0.5, 1e-40]], dtype=np.float32))
    assert made.type == pa.list_(pa.float32(), 2)
    assert vectors.from_bytes(vectors.to_bytes(made), 2).equals(made)
    assert vectors.to_bytes(made.slice(1)) == vectors.to_bytes(made)[1:]


def test_rows_that_are_not_contiguous() -> None:
    rows = np.arange(6, dtype=np.float64).reshape(2, 3).T
    assert vectors.to_arrow(rows).to_pylist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("rows", [[[1, 2], [3, 4]], ([1.5, 2], [3, 4e30]), [["1", 2], [3, 4]]])
def test_vectors_of_providers(rows: Any) -> None:
    found = vectors.to_matrix("m", rows, 2)
    assert found.shape == (2, 2)
    assert found.dtype == np.float32


@pytest.mark.parametrize(
    "rows",
    [None, [], {}, "ab", 5, [[], []], [[1], [2, 3]], [[1, 2]], [[1], [2], [3]], [[1], [None]],
     [[1], ["x"]], [[1], [{}]], [[[1]], [[2]]], [1, 2], [[1], [10**400]]],
)  # fmt: skip
def test_what_is_no_matrix_of_as_many_rows(rows: Any) -> None:
    if rows == [[1], [None]]:
        with pytest.raises(ModelError, match="NaN"):
            vectors.to_matrix("m", rows, 2)
        return
    with pytest.raises(ModelError, match="model 'm': the provider did not return 2 vectors"):
        vectors.to_matrix("m", rows, 2)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_are_finite(number: float) -> None:
    with pytest.raises(ModelError, match="NaN"):
        vectors.to_matrix("m", [[1.0, number]], 1)


def test_lengths_are_one() -> None:
    found = vectors.normalised(np.array([[3, 4], [0, 0], [1e-5, 0]], dtype=np.float32))
    assert found.tolist() == pytest.approx(np.array([[0.6, 0.8], [0, 0], [1, 0]]))


def test_dimensions_are_those_of_the_model() -> None:
    assert vectors.check_dimensions("m", None, (64, 256)) == 256
    assert vectors.check_dimensions("m", 64, (64, 256)) == 64
    with pytest.raises(ModelInputError, match="no vectors of 65 dimensions; it has: 64, 256"):
        vectors.check_dimensions("m", 65, (64, 256))
