"""Keys of loaded rows: the rows that count, and those that end the load."""

from collections.abc import Sequence
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import ExecutionError
from caraway_core.tables import Keys, LookupColumns
from caraway_engine.rows import base_keys
from caraway_engine.rows.pieces import RowRange
from tests.engine.rows.key_rows import SCHEMA, A, B, Row, T, index, pieces


def losers(of: Sequence[RowRange], twice: Literal["refuse", "same", "first", "last"]) -> list[int]:
    keys = Keys(("k", "s"), twice)
    return sorted(base_keys.losers(T, keys, index(of, "k", "s"), of))


@pytest.mark.parametrize("twice", ["refuse", "same", "first", "last"])
def test_keys_that_occur_once_lose_nothing(twice: Any) -> None:
    assert losers(pieces([A, B], [], [(2, "a", 1.0), (None, "a", 1.0)]), twice) == []
    assert losers([], twice) == []


@pytest.mark.parametrize(("twice", "lost"), [("same", [2, 3]), ("first", [2, 3]), ("last", [0, 2])])
def test_of_equal_rows_one_counts(twice: Any, lost: list[int]) -> None:
    assert losers(pieces([A, B], [A], [A]), twice) == lost


@pytest.mark.parametrize(("twice", "lost"), [("first", [2]), ("last", [0])])
def test_of_rows_with_other_values_the_named_one_counts(twice: Any, lost: list[int]) -> None:
    assert losers(pieces([A, B], [(1, "a", 9.0)]), twice) == lost


def test_rows_that_may_not_be_there_twice_end_the_load() -> None:
    with pytest.raises(ExecutionError, match=r"'sales.t': primary key \(k, s\) = 1, 'a' is "
                                             r"duplicated in the loaded rows"):  # fmt: skip
        losers(pieces([A, B], [A]), "refuse")
    with pytest.raises(ExecutionError, match="duplicated with other values in the loaded rows"):
        losers(pieces([A, B], [(1, "a", 9.0)]), "same")


@pytest.mark.parametrize("value", [float("nan"), -0.0, 2.0])
def test_rows_are_the_same_if_they_look_the_same(value: float) -> None:
    assert losers(pieces([(1, "a", value)], [(1, "a", value)]), "same") == [1]


ROWS = st.lists(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["a", "b"]), st.floats(0, 1)),
             max_size=5),
    max_size=4,
)  # fmt: skip


@settings(max_examples=40, deadline=None, derandomize=True)
@given(ROWS)
def test_one_row_of_each_key_is_left(chunks: list[list[Row]]) -> None:
    held = pieces(*chunks)
    rows = [row for chunk in chunks for row in chunk]
    for twice, wanted in (
        ("first", {row[:2]: n for n, row in reversed(list(enumerate(rows)))}),
        ("last", {row[:2]: n for n, row in enumerate(rows)}),
    ):
        lost = losers(held, twice)  # type: ignore[arg-type] # a tuple of texts
        assert sorted({*range(len(rows))} - {*lost}) == sorted(wanted.values())


def test_a_key_with_null_is_refused() -> None:
    held = pieces([A], [(2, None, 1.0)])
    base_keys.check_not_null(T, ["k"], held)
    with pytest.raises(ExecutionError, match="column 's' of its primary key contains NULL"):
        base_keys.check_not_null(T, ["k", "s"], held)


def test_an_index_that_is_unique_refuses_equal_values_but_not_null() -> None:
    null = (None, "a", 1.0)
    held = pieces([A, B, null], [null, (2, "a", 1.0)])
    base_keys.check_unique(T, ["k", "s"], index(held, "k", "s"), held)
    with pytest.raises(ExecutionError, match=r"\(k\) = 1 is duplicated .* is `unique`"):
        base_keys.check_unique(T, ["k"], index(held, "k"), held)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (None, None),
        (Keys(("k", "s")), None),
        (Keys((), indexes=(LookupColumns(("v",)),)), None),
        (Keys(("K",)), "no column 'K', which its `primary_key` or `indexes` name; columns are: k,"),
        (Keys(("k",), indexes=(LookupColumns(("k", "none")),)), "no column 'none'"),
        (Keys(("l",)), r"column 'l' of type list<item: int64> cannot be a key or indexed"),
    ],
)
def test_columns_that_rows_cannot_be_found_by(keys: Keys | None, message: str | None) -> None:
    schema = SCHEMA.append(pa.field("l", pa.list_(pa.int64())))
    if message is None:
        base_keys.check_types(T, schema, keys)
    else:
        with pytest.raises(ExecutionError, match=message):
            base_keys.check_types(T, schema, keys)


def test_keys_and_rows_are_found_by_number_across_pieces() -> None:
    held = pieces([A, B], [], [(3, "c", 1.0)], [(4, None, 1.0)])
    assert base_keys.keys_at(held, ["s", "k"], [0, 2, 3]) == {
        0: ("a", 1),
        2: ("c", 3),
        3: (None, 4),
    }
    assert base_keys.keys_at(held, ["k"], []) == {}
    assert [base_keys.row(held, n).to_pylist()[0]["k"] for n in range(4)] == [1, 1, 3, 4]
    assert base_keys.holding(held, 2).first == 2 and base_keys.holding(held, 2).end == 3
