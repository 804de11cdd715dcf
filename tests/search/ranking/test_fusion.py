"""Ranks are fused by their places, and rows lose with age."""

import math

import pytest

from caraway_search.errors import InvalidSearchError
from caraway_search.ranking.fusion import (
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
        LinearDecay(window_s=-abs(number))
