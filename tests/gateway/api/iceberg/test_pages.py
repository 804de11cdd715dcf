"""Pages of sorted names: each name is on one page, and tokens of others are refused."""

import base64

import pytest

from caraway_core.errors import InvalidRequestError
from caraway_gateway.api.iceberg import pages

NAMES = ["a", "b", "b c", "é", "名", "😀"]


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, None])
def test_each_name_is_on_one_page(size: int | None) -> None:
    found: list[str] = []
    token: str | None = ""
    for _ in range(len(NAMES) + 1):
        page, token = pages.page(NAMES, token, size)
        assert 0 < len(page) <= (size or pages.MOST_PER_PAGE)
        found += page
        if token is None:
            break
    assert found == NAMES


def test_without_a_token_there_is_one_page() -> None:
    assert pages.page(NAMES, None, 2) == (NAMES, None)
    assert pages.page([], "", 2) == ([], None)


def test_names_that_are_gone_do_not_matter() -> None:
    _, token = pages.page(NAMES, "", 2)
    page, _ = pages.page(["0", "b a", "z"], token, 5)
    assert page == ["b a", "z"]


def test_a_page_without_a_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_PER_PAGE", 2)
    page, token = pages.page(NAMES, "", None)
    assert page == NAMES[:2]
    assert token is not None


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode()


@pytest.mark.parametrize(
    "token",
    ["a", "====", "é", "\ud800", encoded(b"b"), encoded(b"after:\xff"), encoded(b"After:b")],
)
def test_tokens_of_others(token: str) -> None:
    with pytest.raises(InvalidRequestError, match="'pageToken' is not one"):
        pages.page(NAMES, token, 2)
