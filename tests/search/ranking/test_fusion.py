"""Ranks are fused by their places, and rows lose with age."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_search.errors import InvalidSearchError
from caraway_search.ranking.fusion import (
    Decay,
    ExponentialDecay,
    FusedRow,
    LinearDecay,
    RankedList,
    Recency,
    fuse,
)


def test_places_weights_and_ties() -> None:
    found = fuse([RankedList("abc"), RankedList("cd", weight=2.0)])
    assert found == [
        FusedRow("c", 1 / 63 + 2 / 61),
        FusedRow("d", 2 / 62),
        FusedRow("a", 1 / 61),
        FusedRow("b", 1 / 62),
    ]
    assert [row.key for row in fuse([RankedList("ab"), RankedList("ba")])] == ["a", "b"]
    assert fuse([RankedList("aba"), RankedList("")], k=0) == [
        FusedRow("a", 1.0),
        FusedRow("b", 0.5),
    ]


def test_old_rows_count_less() -> None:
    lists = [RankedList("abcd")]
    ages = {"a": 43200.0, "b": -5.0, "c": 86400.0}
    linear = {row.key: row.score for row in fuse(lists, recency=Recency(LinearDecay(), ages))}
    assert linear == {"a": 0.5 / 61, "b": 1 / 62, "c": 0.0, "d": 0.0}
    decay = ExponentialDecay(2.0, 43200)
    curved = {row.key: row.score for row in fuse(lists, recency=Recency(decay, ages))}
    assert curved == pytest.approx(
        {"a": math.exp(-2.0) / 61, "b": 1 / 62, "c": math.exp(-4.0) / 63, "d": 0.0}
    )


@pytest.mark.parametrize("number", [-1.0, float("nan"), float("inf")])
def test_numbers_that_make_no_sense_are_refused(number: float) -> None:
    with pytest.raises(InvalidSearchError):
        fuse([RankedList("a")], k=number)
    with pytest.raises(InvalidSearchError):
        fuse([RankedList("a", weight=number)])
    with pytest.raises(InvalidSearchError):
        ExponentialDecay(constant=number)
    with pytest.raises(InvalidSearchError):
        LinearDecay(window_s=number)
    with pytest.raises(InvalidSearchError):
        ExponentialDecay(scale_s=number)


@pytest.mark.parametrize(
    "decay",
    [ExponentialDecay(0.0), ExponentialDecay(5e-324), ExponentialDecay(1e308, 1e-308),
     ExponentialDecay(scale_s=1e308), LinearDecay(1e308), LinearDecay(5e-324)],
)  # fmt: skip
def test_every_factor_is_a_share(decay: Decay) -> None:
    ages = [-math.inf, -1.0, 0.0, 5e-324, 1.0, 1e308, math.inf]
    factors = [decay.factor(age) for age in ages]
    assert all(0 <= factor <= 1 for factor in factors)
    assert factors == sorted(factors, reverse=True) and factors[2] == 1


KEYS = st.lists(st.sampled_from("abcdef"), max_size=8)


@given(st.lists(st.tuples(KEYS, st.floats(0, 1e6)), max_size=4), st.floats(0, 1e6))
def test_fusion_is_the_sum_of_places(lists: list[tuple[list[str], float]], k: float) -> None:
    found = fuse([RankedList(keys, weight) for keys, weight in lists], k)
    scores: dict[str, float] = {}
    for keys, weight in lists:
        first = [key for n, key in enumerate(keys) if key not in keys[:n]]
        for place, key in enumerate(first, 1):
            scores[key] = scores.get(key, 0.0) + weight / (k + place)
    assert {row.key: row.score for row in found} == scores
    assert [row.score for row in found] == sorted(scores.values(), reverse=True)
    named = list(dict.fromkeys(key for keys, _ in lists for key in keys))
    for one, other in pairwise(found):
        assert one.score > other.score or named.index(one.key) < named.index(other.key)
