"""Requests to search tables: their limits, and the query of words."""

from dataclasses import replace
from typing import Any

import pytest

from caraway_assist.search import requests
from caraway_assist.search.requests import SearchRequest
from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext.searching import MOST_HITS

REQUEST = SearchRequest("how to", ("docs",))


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"text": "a" * requests.MOST_TEXT_BYTES},
        {"text": "\ud800"},
        {"datasets": ("d",) * requests.MOST_TABLES},
        {"limit": 1},
        {"limit": MOST_HITS},
        {"where": "a" * requests.MOST_WHERE_BYTES},
        {"where": ""},
        {"additional_columns": ("a",) * requests.MOST_NAMES},
        {"keywords": ("a",) * requests.MOST_NAMES},
    ],
)
def test_requests_within_the_limits(changed: dict[str, Any]) -> None:
    replace(REQUEST, **changed).check()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"text": ""}, "'text' is empty"),
        ({"text": " \n\u2003"}, "'text' is empty"),
        ({"text": "é" * (requests.MOST_TEXT_BYTES // 2) + "a"}, "'text' has more than 65536 bytes"),
        ({"datasets": ()}, "'datasets' names no dataset"),
        ({"datasets": ("d",) * (requests.MOST_TABLES + 1)}, "more than 100 names"),
        ({"limit": 0}, "from 1 to 1000"),
        ({"limit": -1}, "from 1 to 1000"),
        ({"limit": MOST_HITS + 1}, "from 1 to 1000"),
        ({"where": "a" * (requests.MOST_WHERE_BYTES + 1)}, "'where' has more than"),
        ({"additional_columns": ("a",) * 1_001}, "'additional_columns' has more than 1000"),
        ({"keywords": ("a",) * 1_001}, "'keywords' has more than 1000"),
        ({"keywords": ("a" * 40_000,) * 2}, "'keywords' have more than"),
        ({"keywords": ("a", " ")}, "'keywords' has an empty entry"),
    ],
)
def test_requests_beyond_the_limits(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidQueryError, match=said):
        replace(REQUEST, **changed).check()


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ((), "how to"),
        (("a",), "a"),
        (("a", "b c"), 'a "b c"'),
        (('"a"',), "a"),
        (('say "hi" now',), '"say hi now"'),
        (("  a \n b ",), '"a b"'),
    ],
)
def test_a_keyword_of_several_words_is_a_phrase(keywords: tuple[str, ...], words: str) -> None:
    assert replace(REQUEST, keywords=keywords).words == words


@pytest.mark.parametrize(("limit", "ranked"), [(1, 100), (100, 100), (101, 101)])
def test_rankings_that_are_fused_are_not_short(limit: int, ranked: int) -> None:
    assert replace(REQUEST, limit=limit).ranked == ranked


@pytest.mark.parametrize(
    ("where", "predicate"),
    [(None, None), ("a = 1 OR b", "(a = 1 OR b\n)"), ("a --", "(a --\n)")],
)
def test_predicates_are_in_parentheses(where: str | None, predicate: str | None) -> None:
    assert replace(REQUEST, where=where).predicate == predicate


@pytest.mark.parametrize("where", ["a) OR (b", "a; DROP TABLE t", "", "a)", "(a"])
def test_other_texts_are_no_predicate(where: str) -> None:
    with pytest.raises(InvalidQueryError, match="where"):
        _ = replace(REQUEST, where=where).predicate
