"""Cursors of lists: what one stands for, and texts that are none."""

import pytest

from caraway_management.api import paging
from caraway_management.domain.refusals import RefusedError


@pytest.mark.parametrize("ids", [[1], [9, 3], [2**62]])
def test_a_cursor_is_that_of_the_last_row(ids: list[int]) -> None:
    cursor = paging.cursor_after(ids, len(ids))
    assert paging.read_cursor(cursor) == ids[-1]


def test_the_last_page_has_no_cursor() -> None:
    assert paging.cursor_after([], 5) is None
    assert paging.cursor_after([3, 2], 5) is None
    assert paging.read_cursor(None) is None


@pytest.mark.parametrize("cursor", ["", "c", "5", "cx", "c-5", "c5 ", "c 5", "d5", "c5.0", "c" * 99,
                                    "c" + "9" * 20])  # fmt: skip
def test_texts_that_are_no_cursor(cursor: str) -> None:
    with pytest.raises(RefusedError, match="next_cursor of an earlier page") as caught:
        paging.read_cursor(cursor)
    assert list(caught.value.fields) == ["cursor"]
