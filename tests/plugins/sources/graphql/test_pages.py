"""Answers of GraphQL: errors with status 200, lists that are null, and cursors."""

import json
from typing import Any

import pytest

from caraway_core.errors import DatasetError
from caraway_plugins.sources.api.calls import ApiCall, ApiPage
from caraway_plugins.sources.graphql import pages
from caraway_plugins.sources.graphql.pages import GraphqlPages

URL = "https://h/graphql?key=hunter2"
CALL = ApiCall(URL, URL)


def page(value: Any) -> ApiPage:
    return ApiPage(value, URL)


def test_queries_are_sent_with_their_variables() -> None:
    assert json.loads(pages.asked(CALL, "{ a }").body or "") == {"query": "{ a }"}
    found = json.loads(pages.asked(CALL, "{ a }", {"after": None}).body or "")
    assert found == {"query": "{ a }", "variables": {"after": None}}


@pytest.mark.parametrize(
    ("errors", "type_", "said"),
    [
        ([{"message": "no", "type": "NOT_FOUND"}], "not_found", "no; check it"),
        ([{"message": "no", "extensions": {"code": "UNAUTHENTICATED"}}], "auth", "no; check it"),
        ([{"message": "no", "extensions": {"code": 5}}], "invalid", "no; check it"),
        ([{"message": "no", "extensions": "x"}], "invalid", "no; check it"),
        ([{"type": "RATE_LIMITED"}], "unavailable", "no reason"),
        (["no"], "invalid", "no reason"),
        ({"message": "no"}, "invalid", "no reason"),
        ("no", "invalid", "no reason"),
        ([{"message": "x" * 999}], "invalid", f": {'x' * 300}; check it"),
    ],
)
def test_errors_count_also_next_to_data(errors: Any, type_: str, said: str) -> None:
    with pytest.raises(DatasetError) as caught:
        GraphqlPages(CALL, "{ a }", "/data/a").rows(
            CALL, page({"data": {"a": []}, "errors": errors})
        )
    assert caught.value.type == type_
    assert said in caught.value.message
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize("errors", [None, [], {}, ""])
def test_no_errors(errors: Any) -> None:
    pages.refuse_errors(page({"errors": errors}), "h")
    pages.refuse_errors(page([errors]), "h")


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        ({"data": None}, []),
        ({"data": {"a": None}}, []),
        ({"data": {"a": []}}, []),
        ({"data": {"a": [{"x": 1}]}}, [{"x": 1}]),
        ({"data": {"a": {"x": 1}}}, [{"x": 1}]),
    ],
)
def test_rows(value: Any, rows: list[Any]) -> None:
    assert GraphqlPages(CALL, "{ a }", "/data/a").rows(CALL, page(value)) == rows


@pytest.mark.parametrize("value", [None, 5, [], {}, {"data": {}}, {"data": {"a": [5]}}])
def test_answers_of_another_form(value: Any) -> None:
    with pytest.raises(DatasetError) as caught:
        GraphqlPages(CALL, "{ a }", "/data/a").rows(CALL, page(value))
    assert caught.value.type == "schema"


@pytest.mark.parametrize(
    ("info", "cursor"),
    [
        ({"hasNextPage": True, "endCursor": "c"}, "c"),
        ({"hasNextPage": True, "endCursor": ""}, ""),
        ({"hasNextPage": False, "endCursor": "c"}, None),
        ({"endCursor": "c"}, None),
        (None, None),
        ([], None),
    ],
)
def test_cursors(info: Any, cursor: str | None) -> None:
    assert pages.end_cursor(page({"a": {"pageInfo": info}}), "/a/pageInfo", "h") == cursor


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": {}}, "no `pageInfo`"),
        ({"a": {"pageInfo": {"hasNextPage": True}}}, "no `endCursor`"),
        ({"a": {"pageInfo": {"hasNextPage": True, "endCursor": 5}}}, "no `endCursor`"),
    ],
)
def test_cursors_that_are_missing(value: Any, said: str) -> None:
    with pytest.raises(DatasetError, match=said):
        pages.end_cursor(page(value), "/a/pageInfo", "h")


def test_without_a_connection_there_is_one_page() -> None:
    assert GraphqlPages(CALL, "{ a }", "/data/a").next(CALL, page({}), 5) is None
