"""Parameters as Arrow columns."""

import datetime
import decimal
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from caraway.flight import bound_rows
from caraway_core.errors import ParametersError

DAY = datetime.date(2024, 2, 29)
ONE = uuid.UUID(int=1)


@pytest.mark.parametrize(
    ("value", "kind", "sent"),
    [
        (True, pa.bool_(), True),
        (7, pa.int64(), 7),
        (2**63 + 1, pa.decimal128(19, 0), decimal.Decimal(2**63 + 1)),
        (2**70, pa.decimal128(22, 0), decimal.Decimal(2**70)),
        (0.5, pa.float64(), 0.5),
        (float("inf"), pa.float64(), float("inf")),
        ("é", pa.string(), "é"),
        (b"\xff", pa.binary(), b"\xff"),
        (bytearray(b"\xff"), pa.binary(), b"\xff"),
        (memoryview(b"\xff"), pa.binary(), b"\xff"),
        (DAY, pa.date32(), DAY),
        (datetime.time(1, 2), pa.time64("us"), datetime.time(1, 2)),
        (decimal.Decimal("1.50"), pa.decimal128(3, 2), decimal.Decimal("1.50")),
        ([1, None], pa.list_(pa.int64()), [1, None]),
        (None, pa.null(), None),
        (ONE, pa.string(), str(ONE)),
        (np.float32(0.5), pa.float64(), 0.5),
        (np.arange(2), pa.list_(pa.int64()), [0, 1]),
        (pa.scalar(7, pa.int8()), pa.int8(), 7),
    ],
)
def test_value_keeps_its_type(value: Any, kind: pa.DataType, sent: Any) -> None:
    row = bound_rows.row({"v": value})
    assert (row.schema.names, row.schema.types) == (["$v"], [kind])
    assert row.to_pylist() == [{"$v": sent}]


def test_columns_are_named_as_the_parameters() -> None:
    assert bound_rows.row(["a", "b"]).schema.names == ["$1", "$2"]
    assert bound_rows.row({":a": 1, "$b": 2, "c": 3}).schema.names == ["$a", "$b", "$c"]


@pytest.mark.parametrize("value", [[1, "x"], 10**90, object()])
def test_value_without_a_type_is_refused_by_its_name(value: Any) -> None:
    with pytest.raises(ParametersError, match="parameter 'v'"):
        bound_rows.row({"v": value})
