"""A share returns as many rows as it probably has of the best, if rows are spread over shares."""

import random

import pytest

from caraway_core.ids import ExecutorId, TableName
from caraway_core.index_orders import IndexOrder, VectorOrder, WordOrder
from caraway_scheduler.dispatch.indexes.share_limits import ShareLimits, likely_rows

VECTORS = IndexOrder(TableName("t"), VectorOrder("v", b""), ("k",), limit=100)
WORDS = IndexOrder(TableName("t"), WordOrder(("v",), "x", "english", (1.0,)), ("k",), limit=100)
TWO = {ExecutorId("one"): ("a",), ExecutorId("two"): ("b",)}


@pytest.mark.parametrize(
    ("limit", "shares", "rows"),
    [(1, 2, 1), (50, 2, 50), (60, 2, 50), (100, 2, 65), (100, 3, 50), (1000, 2, 548)],
)  # fmt: skip
def test_how_many_rows_a_share_probably_has(limit: int, shares: int, rows: int) -> None:
    assert likely_rows(limit, shares) == rows


def test_a_share_rarely_has_more() -> None:
    chance = random.Random(3)
    asked = likely_rows(1000, 3)
    more = 0
    for _ in range(300):
        counts = [0, 0, 0]
        for _ in range(1000):
            counts[chance.randrange(3)] += 1
        more += max(counts) > asked
    assert more <= 5


def test_one_share_has_all_rows() -> None:
    assert ShareLimits().limit_of("v1", VECTORS, {ExecutorId("one"): ("a",)}) == 100


def test_where_rows_are_not_spread_shares_are_asked_for_all_for_a_while() -> None:
    limits = ShareLimits()
    assert limits.limit_of("v1", VECTORS, TWO) == 65
    limits.note("v1", VECTORS, was_missed=True)
    assert limits.limit_of("v1", VECTORS, TWO) == 65
    limits.note("v1", VECTORS, was_missed=True)
    assert limits.limit_of("v1", VECTORS, TWO) == 100
    # Other versions, and other kinds of searches, are another matter.
    assert limits.limit_of("v2", VECTORS, TWO) == limits.limit_of("v1", WORDS, TWO) == 65
    asked = [limits.limit_of("v1", VECTORS, TWO) for _ in range(30)]
    assert asked.index(65) in range(5, 20) and set(asked) == {100, 65}


def test_a_miss_among_many_searches_changes_nothing() -> None:
    limits = ShareLimits()
    for number in range(100):
        limits.note("v1", VECTORS, was_missed=number % 25 == 0)
        assert limits.limit_of("v1", VECTORS, TWO) == 65
