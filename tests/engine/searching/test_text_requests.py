"""Requests of text searches cross to engines as text, and their statistics as numbers."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import CarawayError
from caraway_engine.searching.text_requests import TextRequest
from caraway_search.queries.tree import CountedTerm
from caraway_search.text.statistics import ColumnStatistics, TextStatistics

REQUEST = TextRequest("red shoes", "english", (1.0, 2.5))


@given(
    st.text(max_size=40),
    st.lists(st.floats(allow_nan=False), max_size=3),
    st.lists(st.integers(), max_size=5),
)
def test_a_request_is_read_as_it_was_written(
    text: str, boosts: list[float], statistics: list[int]
) -> None:
    request = TextRequest(text, "english", tuple(boosts), tuple(statistics))
    assert TextRequest.decoded(request.encoded()) == request


@pytest.mark.parametrize(
    "text",
    [
        None, "", "x", "null", "1", '"x"', "[]", "{}", '["boosts", "statistics"]',
        '{"boosts": [1]}', '{"boosts": 1, "statistics": []}', '{"boosts": [], "statistics": null}',
        '{"boosts": [], "statistics": [], "text": "x", "language": "english", "more": 1}',
        '{"boosts": [], "statistics": [], "text": "x"}', "[" * 100_000, '{"a":' * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused(text: str | None) -> None:
    with pytest.raises(ValueError, match="the query of a search is an encoded request"):
        TextRequest.decoded(text)


def test_what_is_sought_is_counted_once_in_the_order_of_the_query() -> None:
    twice = TextRequest("shoes red shoes", "english", (1.0,))
    assert twice.sought == (CountedTerm("shoe"), CountedTerm("red"))
    assert TextRequest("", "english", (1.0,)).sought == ()


def statistics(request: TextRequest, base: int) -> TextStatistics:
    return TextStatistics(
        {
            name: ColumnStatistics(
                base + number,
                10 * base + number,
                {term: base + place for place, term in enumerate(request.sought)},
            )
            for number, name in enumerate(request.columns)
        }
    )


@pytest.mark.parametrize("text", ["", "red", "red shoes", '"red shoes" +blue -green sho*'])
@pytest.mark.parametrize("boosts", [(1.0,), (1.0, 2.0), (0.5, 1.0, 3.0)])
def test_statistics_are_numbers_that_add_up(text: str, boosts: tuple[float, ...]) -> None:
    request = TextRequest(text, "english", boosts)
    parts = [statistics(request, 3), statistics(request, 40)]
    packed = [request.packed(each) for each in parts]
    total = tuple(map(sum, zip(*packed, strict=True)))
    assert request.with_statistics(total).table_statistics == TextStatistics.merged(parts)


def test_terms_that_a_part_does_not_have_count_as_none() -> None:
    part = TextStatistics({"0": ColumnStatistics(2, 7), "1": ColumnStatistics(1, 1)})
    assert REQUEST.packed(part) == (2, 7, 0, 0, 1, 1, 0, 0)


@pytest.mark.parametrize("count", [0, 1, 7, 9, 16])
def test_statistics_of_another_query_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match="the statistics of a search are not those of its query"):
        _ = REQUEST.with_statistics([1] * count).table_statistics


@pytest.mark.parametrize(
    "change", [{"language": "klingon"}, {"boosts": [0.0]}, {"boosts": [-1.0]}, {"boosts": ["x"]}]
)
def test_a_spec_that_cannot_be_is_an_error(change: dict[str, Any]) -> None:
    made = TextRequest.decoded(json.dumps({**json.loads(REQUEST.encoded()), **change}))
    with pytest.raises((CarawayError, TypeError, ValueError)):
        _ = made.spec
