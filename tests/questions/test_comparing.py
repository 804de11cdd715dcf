"""Rows are the right ones whatever their columns are called; wrong ones are not."""

from typing import Any

import pytest

from tests.questions import asked, comparing

RIGHT = [{"a": "x", "n": 1}, {"a": "y", "n": 2.5}]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([{"name": "x", "c": 1.0}, {"name": "y", "c": "2.50"}], True),
        ([{"c": 2.5, "name": "y"}, {"c": 1, "name": "x"}], True),
        ([{"id": 7, "c": 2.5, "name": "y"}, {"id": 8, "c": 1, "name": "x"}], True),
        ([{"name": "x", "c": 1}], False),
        ([{"name": "x"}, {"name": "y"}], False),
        ([{"name": "x", "c": 1}, {"name": "y", "c": 3}], False),
        ([{"name": "y", "c": 1}, {"name": "x", "c": 2.5}], False),
        ([{"name": "X", "c": 1}, {"name": "y", "c": 2.5}], False),
        ([{"name": None, "c": 1}, {"name": "y", "c": 2.5}], False),
        ([], False),
    ],
)
def test_rows(given: list[dict[str, Any]], expected: bool) -> None:
    assert comparing.is_same(given, RIGHT, has_order=False) is expected


def test_order_counts_where_it_was_asked_for() -> None:
    assert comparing.is_same(RIGHT, RIGHT, has_order=True)
    assert not comparing.is_same(RIGHT[::-1], RIGHT, has_order=True)


def test_there_are_sixty_questions() -> None:
    assert len(asked.ALL) == len({(each.suite, each.text) for each in asked.ALL}) == 60
