"""Pages of APIs: by links, cursors, offsets and numbers."""

from typing import Any

import httpx
import pytest

from caraway_core.errors import DatasetError
from caraway_core.tables.scanners import ColumnFilter, RowRequest
from caraway_plugins.sources.api.calls import ApiCall, ApiPage
from caraway_plugins.sources.api.rest import RestPages

URL = "https://api.example.com/rows?key=hunter2"
CALL = ApiCall(URL, URL)
ALL = RowRequest(["id"])


def pages(**changed: Any) -> RestPages:
    return RestPages(CALL, **changed)


def params(call: ApiCall | None) -> dict[str, str]:
    assert call is not None
    return {name: value for name, value in httpx.URL(call.url).params.items() if name != "key"}


def page(value: object = None, link: str | None = None) -> ApiPage:
    return ApiPage(value, URL, link)


@pytest.mark.parametrize(
    ("changed", "sent"),
    [
        ({}, {}),
        ({"size_param": "n", "size": 50}, {"n": "50"}),
        ({"size_param": "n"}, {}),
        ({"size": 50}, {}),
        ({"offset_param": "at"}, {"at": "0"}),
        ({"page_param": "p", "first_page": 0}, {"p": "0"}),
    ],
)
def test_first_pages(changed: dict[str, Any], sent: dict[str, str]) -> None:
    assert params(pages(**changed).first(ALL)) == sent


@pytest.mark.parametrize(
    ("limit", "filters", "size"),
    [(None, [], "50"), (7, [], "7"), (0, [], "1"), (99, [], "50"),
     (7, [ColumnFilter("id", "=", 1)], "50")],
)  # fmt: skip
def test_pages_are_as_small_as_the_limit(
    limit: int | None, filters: list[ColumnFilter], size: str
) -> None:
    request = RowRequest(["id"], filters=filters, limit=limit)
    assert params(pages(size_param="n", size=50).first(request)) == {"n": size}


@pytest.mark.parametrize(
    ("changed", "first", "second"),
    [({"offset_param": "at"}, "0", "30"), ({"page_param": "at"}, "1", "2")],
)
def test_counted_pages_end_with_an_empty_one(
    changed: dict[str, Any], first: str, second: str
) -> None:
    counted = pages(**changed)
    call = counted.first(ALL)
    assert params(call) == {"at": first}
    following = counted.next(call, page([]), 30)
    assert params(following) == {"at": second}
    assert counted.next(call, page([]), 0) is None


def test_links() -> None:
    call = pages().next(CALL, page([], "/rows?page=2"), 0)
    assert call is not None
    assert call.url == "https://api.example.com/rows?page=2"
    assert pages().next(CALL, page([]), 5) is None
    assert pages(follows_links=False).next(CALL, page([], "/rows?page=2"), 5) is None


@pytest.mark.parametrize(
    ("value", "sent"),
    [({"next": "c d"}, "c d"), ({"next": 7}, "7"), ({"next": 0}, "0"), ({"next": "0"}, "0")],
)
def test_cursors(value: Any, sent: str) -> None:
    found = pages(next_pointer="/next", token_param="after").next(CALL, page(value), 5)
    assert params(found) == {"after": sent}


@pytest.mark.parametrize("value", [{}, None, [], {"next": None}, {"next": ""}, {"next": False}])
def test_the_last_page_has_no_cursor(value: Any) -> None:
    assert pages(next_pointer="/next", token_param="after").next(CALL, page(value), 5) is None


@pytest.mark.parametrize("found", [True, 1.5, ["a"], {"a": 1}])
def test_cursors_of_other_types(found: Any) -> None:
    with pytest.raises(DatasetError, match="check pagination_next_pointer") as caught:
        pages(next_pointer="/next").next(CALL, page({"next": found}), 5)
    assert "hunter2" not in caught.value.message


def test_an_address_may_be_in_the_answer() -> None:
    call = pages(next_pointer="/next").next(CALL, page({"next": "?page=2"}), 5)
    assert params(call) == {"page": "2"}
    with pytest.raises(DatasetError, match="not one of the web"):
        pages(next_pointer="/next").next(CALL, page({"next": "file:///etc/passwd"}), 5)


@pytest.mark.parametrize(
    ("pointer", "value", "rows"),
    [
        ("", None, []),
        ("", [], []),
        ("", {"a": 1}, [{"a": 1}]),
        ("/data", {"data": [{"a": 1}, {"a": 2}]}, [{"a": 1}, {"a": 2}]),
        ("/data", {"data": None}, []),
    ],
)
def test_rows(pointer: str, value: Any, rows: list[Any]) -> None:
    assert pages(pointer=pointer).rows(CALL, page(value)) == rows
