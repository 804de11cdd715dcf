"""A table of one column per type, for statements that fail."""

import datetime

import pyarrow as pa

from tests.kit.engine import memory

DAY = datetime.date(2020, 1, 1)
TABLE = memory(
    i=pa.array([1, 2, None], pa.int64()), f=[1.0, 2.0, None], s=["a", "x", None], d=[DAY] * 3,
    ts=[datetime.datetime(2020, 1, 1)] * 3, b=[True, False, None],
    l=pa.array([[1], [2], None], pa.list_(pa.int64())), st=[{"a": 1}] * 3,
)  # fmt: skip
