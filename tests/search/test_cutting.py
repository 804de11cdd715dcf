"""Long texts are cut into parts of a size, if possible where something ends."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_search.cutting import TextCutter
from caraway_search.errors import InvalidSearchError


def parts(cutter: TextCutter, text: str) -> list[str]:
    return [text[part.start : part.end] for part in cutter.parts(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n ", []),
        ("short", ["short"]),
        ("One two. Three four five six", ["One two.", "Three four", "five six"]),
        ("A paragraph\n\nB. C", ["A paragraph", "B. C"]),
        ("x" * 30, ["x" * 13, "x" * 13, "xxxx"]),
        ("一二三四五六七。八九十一二三四五", ["一二三四五六七。", "八九十一二三四五"]),
    ],
)
def test_parts_end_where_something_ends(text: str, expected: list[str]) -> None:
    assert parts(TextCutter(13), text) == expected


def test_parts_overlap_from_the_start_of_a_word() -> None:
    found = parts(TextCutter(16, 6), "alpha beta gamma delta epsilon")
    assert found == ["alpha beta gamma", "gamma delta", "delta epsilon"]


@given(
    st.text("ab .\n!中", max_size=200),
    st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))),
    st.booleans(),
)
def test_parts_hold_everything_within_their_size(
    text: str, sizes: tuple[int, int], trims: bool
) -> None:
    size, overlap = sizes
    found = TextCutter(size, overlap, trims).parts(text)
    assert all(0 < part.end - part.start <= size for part in found)
    assert all(one.start < other.start for one, other in pairwise(found))
    covered = {n for part in found for n in range(part.start, part.end)}
    missing = [n for n in range(len(text)) if n not in covered]
    assert all(trims and text[n].isspace() for n in missing)
    if trims:
        assert all(text[p.start : p.end].strip() == text[p.start : p.end] for p in found)


@pytest.mark.parametrize("overlap", [-1, 10, 11])
def test_an_overlap_is_smaller_than_a_part(overlap: int) -> None:
    with pytest.raises(InvalidSearchError, match="cannot overlap"):
        TextCutter(10, overlap)
