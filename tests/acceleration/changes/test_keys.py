"""Keys of rows that statements add or change."""

import datetime as dt
from decimal import Decimal
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pyarrow as pa
import pytest

from caraway_acceleration.changes import keys
from caraway_core.errors import InvalidQueryError
from caraway_core.ids import TableName

NAME = TableName("t")
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, -1, 2**62],
    pa.string(): ["", "a", "A", "b"],
    pa.string_view(): ["", "a", "A", "b"],
    pa.binary(): [b"", b"a", b"b"],
    pa.bool_(): [True, False],
    pa.float64(): [0.0, -0.0, 1.0, 2.5],
    pa.decimal128(9, 2): [Decimal("1.00"), Decimal("1.10"), Decimal("-1.00")],
    pa.date32(): [dt.date(2020, 1, 1), dt.date(2020, 1, 2)],
    pa.timestamp("us", "UTC"): [dt.datetime(2020, 1, day, tzinfo=dt.UTC) for day in (1, 2, 3)],
}


def by_hand(rows: list[tuple[Any, ...]], exists: list[bool], leaving: set[Any]) -> bool:
    """Return whether two rows would have one key."""
    seen = set()
    for key, is_there in zip(rows, exists, strict=True):
        if key in seen or (is_there and key not in leaving):
            return True
        seen.add(key)
    return False


@hypothesis.given(st.data())
def test_repeated_keys_are_found_as_by_comparing_one_by_one(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=2))
    key = st.tuples(*(st.sampled_from(VALUES[kind]) for kind in types))
    rows = data.draw(st.lists(key, max_size=4))
    exists = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    left = data.draw(st.none() | st.lists(key, max_size=4))

    def table(values: list[tuple[Any, ...]], prefix: str) -> pa.Table:
        columns = {
            f"{prefix}{index}": pa.chunked_array([[each[index] for each in values]], kind)
            for index, kind in enumerate(types)
        }
        return pa.table(columns)

    def check() -> None:
        flags = pa.chunked_array([exists], pa.bool_())
        keys.check(NAME, table(rows, "k"), flags, None if left is None else table(left, "old"))

    if by_hand(rows, exists, set(left or ())):
        with pytest.raises(InvalidQueryError, match="two rows with k0 = "):
            check()
    else:
        check()


def test_the_first_repeated_key_is_named() -> None:
    rows = pa.table({"a": [1, 2, 1, 2], "b": ["x", "y", "x", "y"]})
    with pytest.raises(InvalidQueryError, match="two rows with a = 1, b = 'x'; nothing is changed"):
        keys.check(NAME, rows, pa.chunked_array([[False] * 4]), None)
