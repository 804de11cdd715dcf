"""Queries of lists of a repository: the filters that are sent, and the pages."""

import json
from datetime import UTC, datetime

import pytest

from caraway_core.tables.scanners import ColumnFilter, RowRequest
from caraway_plugins.sources.api.calls import ApiCall, ApiPage
from caraway_plugins.sources.github.lists import LISTS, ListPages

URL = "https://api.github.com/graphql"
CALL = ApiCall(URL, URL)
EXACT = datetime(2024, 1, 1, tzinfo=UTC)
LATER = datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)


def pages(kind: str) -> ListPages:
    return ListPages(CALL, "o", "r", kind)


def query(kind: str, request: RowRequest) -> str:
    text: str = json.loads(pages(kind).first(request).body or "")["query"]
    return text


@pytest.mark.parametrize(
    ("kind", "filters", "sent"),
    [
        ("issues", [("state", "=", "OPEN")], ", states: [OPEN]"),
        ("pulls", [("state", "=", "MERGED")], ", states: [MERGED]"),
        ("issues", [("state", "=", "MERGED")], ""),
        ("issues", [("state", "=", "OPEN) { id } }")], ""),
        ("issues", [("state", "<>", "OPEN")], ""),
        ("issues", [("state", "=", "OPEN"), ("state", "=", "CLOSED")], ""),
        ("issues", [("title", "=", "a")], ""),
        ("issues", [("updated_at", ">", EXACT)], ', filterBy: {since: "2024-01-01T00:00:00Z"}'),
        ("issues", [("updated_at", "<", EXACT)], ""),
        ("commits", [("committed_date", ">=", LATER)], ', since: "2024-01-01T00:00:00Z"'),
        ("commits", [("committed_date", "<=", LATER)], ', until: "2024-01-01T00:00:01Z"'),
        ("commits", [("committed_date", ">", EXACT), ("committed_date", "<", LATER)],
         ', since: "2024-01-01T00:00:00Z", until: "2024-01-01T00:00:01Z"'),
    ],
)  # fmt: skip
def test_filters(kind: str, filters: list[tuple[str, str, object]], sent: str) -> None:
    made = [ColumnFilter(*each) for each in filters]  # type: ignore[arg-type] # operators
    assert LISTS[kind].sent(made) == sent


@pytest.mark.parametrize("kind", list(LISTS))
def test_queries_are_balanced_and_have_the_columns(kind: str) -> None:
    names = LISTS[kind].schema.names[:2]
    text = query(kind, RowRequest(names))
    assert text.count("{") == text.count("}")
    assert text.count("(") == text.count(")")
    for each in LISTS[kind].columns:
        assert (each.selection in text) == (each.name in names)


@pytest.mark.parametrize(
    ("limit", "filters", "size"),
    [(None, [], 100), (5, [], 5), (0, [], 1), (500, [], 100),
     (5, [ColumnFilter("state", "=", "OPEN")], 100)],
)  # fmt: skip
def test_pages_are_as_small_as_the_limit(
    limit: int | None, filters: list[ColumnFilter], size: int
) -> None:
    text = query("issues", RowRequest(["title"], filters=filters, limit=limit))
    assert f"first: {size}, after" in text
    assert ("state: state" in text) == bool(filters)


def answer(info: dict[str, object], *nodes: object) -> ApiPage:
    issues = {"nodes": list(nodes), "pageInfo": info}
    return ApiPage({"data": {"repository": {"issues": issues}}}, URL)


def test_the_next_page_is_after_the_cursor() -> None:
    first = pages("issues").first(RowRequest(["title"]))
    found = pages("issues").next(first, answer({"hasNextPage": True, "endCursor": "c"}), 1)
    assert found is not None
    variables = json.loads(found.body or "")["variables"]
    assert variables == {"owner": "o", "name": "r", "after": "c"}
    assert pages("issues").next(first, answer({"hasNextPage": False}), 1) is None


def test_rows() -> None:
    rows = pages("issues").rows(CALL, answer({}, {"title": "a"}))
    assert [each["title"] for each in rows] == ["a"]
    empty = ApiPage({"data": {"repository": {"defaultBranchRef": None}}}, URL)
    assert pages("commits").rows(CALL, empty) == []
