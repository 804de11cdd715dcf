"""Facts of rows in memory are near the truth."""

import pyarrow as pa
import pytest

from caraway_engine.join_orders import sampled

COUNT = 400_000


@pytest.mark.parametrize(
    ("values", "distinct"),
    [
        (pa.array(range(COUNT)), COUNT),
        (pa.array([number // 4 for number in range(COUNT)]), COUNT // 4),
        (pa.array([number * 7919 % 1_000 for number in range(COUNT)]), 1_000),
        (pa.array([f"n{number % 25}" for number in range(COUNT)], pa.string_view()), 25),
        (pa.array([None] * COUNT, pa.int64()), 1),
    ],
)
def test_the_number_of_values(values: pa.Array, distinct: int) -> None:
    rows = pa.table({"v": values})

    found = sampled.facts(rows.schema, rows.to_batches(max_chunksize=65_536)).columns["v"]

    assert found.distinct == pytest.approx(distinct, rel=0.05)


def test_ranges_are_those_of_numbers() -> None:
    rows = pa.table({"v": pa.array([3, 1, 2]), "s": ["b", "a", "c"], "l": [[1], [2], [3]]})

    found = sampled.facts(rows.schema, rows.to_batches())

    assert (found.columns["v"].least, found.columns["v"].greatest) == (1.0, 3.0)
    assert found.columns["s"].least is None
    assert found.columns["l"].distinct is None
    assert found.rows == 3


def test_no_rows() -> None:
    assert sampled.facts(pa.schema({"v": pa.int64()}), []).rows == 0
