"""Conditions that may fail for rows that other joins remove keep the joins where they are."""

import pyarrow as pa
import pytest

from caraway_engine.join_orders import failing, regions
from caraway_engine.join_orders.estimates import Estimator
from caraway_engine.join_orders.members import Members
from caraway_engine.join_orders.regions import NotMovableError
from tests.engine.join_orders import made


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (pa.int32(), pa.int64(), True),
        (pa.int64(), pa.int32(), False),
        (pa.uint32(), pa.int64(), True),
        (pa.int32(), pa.uint64(), False),
        (pa.int64(), pa.float64(), True),
        (pa.float64(), pa.float32(), False),
        (pa.float64(), pa.int64(), False),
        (pa.decimal128(15, 2), pa.decimal128(30, 15), True),
        (pa.decimal128(15, 2), pa.decimal128(15, 4), False),
        (pa.int64(), pa.decimal128(20, 0), True),
        (pa.int64(), pa.decimal128(20, 2), False),
        (pa.string(), pa.string_view(), True),
        (pa.string(), pa.int64(), False),
        (pa.string(), pa.date32(), False),
        (pa.date32(), pa.timestamp("ns"), False),
        (None, pa.int64(), False),
    ],
)
def test_casts_that_keep_each_value(
    source: pa.DataType | None, target: pa.DataType, expected: bool
) -> None:
    assert failing._widens(source, target) is expected


@pytest.mark.parametrize(
    ("condition", "moves"),
    [
        ("f.d = m.d AND m.k = k.k", True),
        ("f.d = m.d AND CAST(m.k AS DOUBLE) > CAST(k.k AS DOUBLE)", True),
        ("f.d = m.d AND CAST(m.k AS DOUBLE) > k.k - m.k", False),
        ("f.d = m.d AND m.k = CAST(substr(k.name, 2) AS BIGINT)", False),
        ("f.d = m.d AND CAST(k.name AS BIGINT) = m.k", False),
        ("f.d = m.d AND 10 / m.k = k.k", False),
        ("f.d = m.d AND m.k + 1 = k.k", False),
        ("f.d = m.d AND -m.k = k.k", False),
        ("f.d = m.d AND m.k BETWEEN k.k AND k.k", True),
    ],
)
def test_only_conditions_that_cannot_fail_move(condition: str, moves: bool) -> None:
    context = made.context()
    sql = f"SELECT f.v, k.name FROM facts f, middle m, kinds k WHERE {condition}"
    plan = context.sql(sql).optimized_logical_plan()._raw_plan
    try:
        region = regions.region(plan)
        assert region is not None
        estimator = Estimator(made.facts_of())
        Members(context, region, [estimator.estimate(each) for each in region.leaves])
    except NotMovableError:
        assert not moves
    else:
        assert moves
