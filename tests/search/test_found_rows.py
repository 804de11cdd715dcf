"""Shares of a search become one answer: the best scores, then the least ties."""

import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.ids import TableName
from caraway_core.index_orders import IndexOrder, VectorOrder, WordOrder
from caraway_search import found_rows

ROW = st.tuples(st.integers(0, 3), st.sampled_from([0.5, 1.0, 2.0]), st.none() | st.integers(0, 2))


def take(values: pa.Array, numbers: pa.Array) -> pa.Array:
    return values.take(numbers)


def order(
    limit: int, columns: tuple[str, ...] = ("a",), ties: tuple[str, ...] = ("t",)
) -> IndexOrder:
    return IndexOrder(TableName("t"), VectorOrder("v", b""), columns, ties, limit=limit)


def share(rows: list[tuple[int, float, int | None]]) -> pa.Table:
    a, scores, ties = [list(each) for each in zip(*rows, strict=True)] or ([], [], [])
    return pa.table({"a": pa.array(a, pa.int64()), "t": pa.array(ties, pa.int64()),
                     "s": pa.array(scores, pa.float64())})  # fmt: skip


@given(st.lists(st.lists(ROW, max_size=6), min_size=1, max_size=4), st.integers(0, 8))
def test_the_best_of_all_shares(shares: list[list[Any]], limit: int) -> None:
    rows = [row for each in shares for row in each]
    tables = [share(each) if each else share([(0, 0.0, None)]).slice(1) for each in shares]
    found = found_rows.merged(order(limit), tables, take)
    assert found.column_names == ["a", "score"]
    # Sorting is stable, so equal rows are in the order of their shares.
    best = sorted(rows, key=lambda row: (-row[1], row[2] is None, row[2] or 0))[:limit]
    assert list(zip(*(column.to_pylist() for column in found.columns), strict=True)) == [
        (a, score) for a, score, _ in best
    ]


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (("a",), ["a", "score", "part"]),
        (("score",), ["score", "_score", "part"]),
        (("part", "score", "_score"), ["part", "score", "_score", "__score", "_part"]),
        ((), ["score", "part"]),
    ],
)
def test_names_of_scores_and_parts_are_free(columns: tuple[str, ...], names: list[str]) -> None:
    values = [*[pa.array([1])] * (len(columns) + 1), pa.array([0.5]), pa.array([7])]
    rows = pa.table(values, [f"c{n}" for n in range(len(values))])
    found = found_rows.answer(order(5, columns), rows)
    assert found.column_names == names
    assert found.column(names[-2]).to_pylist() == [0.5]


def test_counts_of_shares_add_up() -> None:
    counting = IndexOrder(TableName("t"), WordOrder(("a",), "x", "english", (1.0,)))
    tables = [found_rows.counted([1, 2, 3]), found_rows.counted([10, 0, 1])]
    assert found_rows.merged(counting, tables, take).column(0).to_pylist() == [[11, 2, 4]]
    scoring = IndexOrder(TableName("t"), WordOrder(("a",), "x", "english", (1.0,), (1,)),
                         ("a",), ("t",), limit=1)  # fmt: skip
    assert found_rows.merged(scoring, [share([(1, 2.0, 0)])], take).num_rows == 1


TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [False, True]),
    "date": (pa.date32(), [datetime.date(1969, 1, 1), datetime.date(2020, 1, 1)]),
    "timestamp": (pa.timestamp("us", "UTC"), [1, 2]),
    "time": (pa.time64("us"), [1, 2]),
    "decimal": (pa.decimal128(5, 2), [Decimal("-1.5"), Decimal("0.25")]),
    "large decimal": (pa.decimal256(50, 2), [Decimal("-1.5"), Decimal("0.25")]),
    "fixed bytes": (pa.binary(2), [b"ab", b"b\0"]),
    "text": (pa.string(), ["Z", "a"]),
    "view": (pa.string_view(), ["", "a"]),
    "view of bytes": (pa.binary_view(), [b"\x7f", b"\xff"]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "é"]),
    "half float": (pa.float16(), [-0.5, 1.5]),
    "unsigned": (pa.uint64(), [2**62, 2**64 - 1]),
    "null": (pa.null(), [None, None]),
}


@pytest.mark.parametrize("name", TYPES)
def test_keys_of_every_type_decide(name: str) -> None:
    type_, (least, most) = TYPES[name]
    keys = pa.chunked_array([pa.array([None, most], type_), pa.array([least], type_)])
    rows = pa.table({"t": keys, "s": pa.array([1.0, 1.0, 1.0])})
    found = found_rows.first(rows, [0], 1, 3).to_pylist()
    assert found == ([0, 1, 2] if name == "null" else [2, 1, 0])


def test_a_score_that_is_no_number_comes_last() -> None:
    rows = pa.table({"s": pa.array([float("nan"), None, -1.0, float("inf"), float("-inf")])})
    found = pc.take(rows.column(0), found_rows.first(rows, [], 0, 3)).to_pylist()
    assert found == [float("inf"), -1.0, float("-inf")]


@given(
    st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0, math.nan, None]) | st.floats(0, 9), max_size=12),
    st.integers(0, 14),
)
def test_ties_are_looked_at_only_where_there_are_some(
    scores: list[float | None], limit: int
) -> None:
    ties = [-number for number in range(len(scores))]
    rows = pa.table({"t": pa.array(ties, pa.int64()), "s": pa.array(scores, pa.float64())})
    by = [("s", "descending", "at_end"), ("t", "ascending", "at_end")]
    expected = pc.sort_indices(rows, by)[:limit]
    assert found_rows.first(rows, [0], 1, limit).to_pylist() == expected.to_pylist()


@given(
    st.lists(st.lists(ROW, max_size=9), min_size=1, max_size=4), st.integers(0, 12),
    st.integers(1, 6),
)  # fmt: skip
def test_shares_that_are_not_cut_short_have_all_that_is_needed(
    shares: list[list[Any]], limit: int, asked: int
) -> None:
    ordered = [
        sorted(each, key=lambda row: (-row[1], row[2] is None, row[2] or 0)) for each in shares
    ]

    def tables(counts: list[int]) -> list[pa.Table]:
        rows = [each[:count] for each, count in zip(ordered, counts, strict=True)]
        return [share(each) if each else share([(0, 0.0, None)]).slice(1) for each in rows]

    whole = found_rows.merged(order(limit), tables([99] * len(shares)), take)
    first = found_rows.FoundShares(order(limit), tables([asked] * len(shares)))
    cut = first.cut_short(asked)
    again = tables([99 if is_cut else asked for is_cut in cut])
    scores = [each["score"] for each in found_rows.merged(order(limit), again, take).to_pylist()]
    assert scores == [each["score"] for each in whole.to_pylist()]
    for each, is_cut in zip(ordered, cut, strict=True):
        assert not is_cut or len(each) >= asked
