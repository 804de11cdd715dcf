"""Filters that are applied here keep the rows that pyarrow's own filter keeps."""

import itertools
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from caraway_engine.remote import locally
from caraway_engine.remote.locally import LocalCondition

BATCH = pa.record_batch(
    {
        "a": pa.array([1, 2, None, 4, 5], pa.int64()),
        "f": pa.array([0.5, float("nan"), 1.5, None, -0.0], pa.float64()),
        "s": ["x", None, "y", "", "x"],
    }
)
A, F, S = pc.field("a"), pc.field("f"), pc.field("s")
SIMPLE = [A > 2, F <= 1.0, S == "x", A.is_null(), S.is_valid(), A.isin([1, 5])]
FILTERS = [
    *SIMPLE,
    *(one & two for one, two in itertools.combinations(SIMPLE, 2)),
    *(~one | two for one, two in itertools.pairwise(SIMPLE)),
]


def kept(condition: LocalCondition, batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return [row for part in condition.parts(batch) for row in part.to_pylist()]


@pytest.mark.parametrize("expression", FILTERS, ids=str)
def test_rows_are_those_that_pyarrow_keeps(expression: Any) -> None:
    expected = pa.Table.from_batches([BATCH]).filter(expression).to_pylist()
    assert str(kept(LocalCondition.from_filter(expression), BATCH)) == str(expected)


def test_no_filter_keeps_all_and_constants_keep_all_or_none() -> None:
    assert len(kept(LocalCondition.from_filter(None), BATCH)) == 5
    assert len(kept(LocalCondition.from_filter(pa.scalar(True)), BATCH)) == 5
    assert kept(LocalCondition.from_filter(pa.scalar(False)), BATCH) == []
    assert kept(LocalCondition.from_filter(pa.scalar(None, pa.bool_())), BATCH) == []


def test_it_says_which_columns_it_reads() -> None:
    assert LocalCondition.from_filter(None).columns == frozenset()
    assert LocalCondition.from_filter((A > 2) & (S == "x")).columns == frozenset({"a", "s"})


def test_expression_of_unknown_form_is_left_to_pyarrow_and_may_read_any_column() -> None:
    expression = pc.field("s").cast(pa.binary()) == b"x"
    condition = LocalCondition.from_filter(expression)
    rows = kept(condition, BATCH)
    assert [row["a"] for row in rows] == [1, 5]
    if condition.unread is not None:
        assert condition.columns is None


def test_long_batches_are_cut_so_that_parts_run_in_parallel() -> None:
    rows = 2 * locally._BATCH_ROWS + 1
    batch = pa.record_batch({"a": pa.array(range(rows), pa.int64())})
    parts = list(LocalCondition.from_filter(A >= 0).parts(batch))
    assert [each.num_rows for each in parts] == [locally._BATCH_ROWS] * 2 + [1]
    assert pa.Table.from_batches(parts)["a"].to_pylist() == list(range(rows))
