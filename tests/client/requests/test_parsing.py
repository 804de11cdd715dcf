"""JSON of servers: lines over any chunks; the error of other content quotes the response."""

import json
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway.errors import BrokenResponseError
from caraway.requests import parsing

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner,
                                                                max_size=3),
    max_leaves=5,
)  # fmt: skip


def cut(body: bytes, places: list[int]) -> Iterator[bytes]:
    """The body in chunks of any size, also empty ones."""
    edges = [0, *sorted(place % (len(body) + 1) for place in places), len(body)]
    for start, end in pairwise(edges):
        yield body[start:end]


@given(st.lists(VALUES, max_size=6), st.lists(st.integers(0, 10**6), max_size=8), st.booleans())
def test_lines_are_the_same_however_they_are_cut(
    values: list[object], places: list[int], ends: bool
) -> None:
    body = b"\n".join(json.dumps(value).encode() for value in values) + (b"\n" if ends else b"")
    found = [json.loads(line) for line in parsing.iter_lines(cut(body, places))]
    assert found == values


@given(st.lists(VALUES, max_size=6), st.lists(st.integers(0, 10**6), max_size=8), st.booleans())
def test_an_array_of_lines_has_their_values(
    values: list[object], places: list[int], ends: bool
) -> None:
    body = b"\n".join(json.dumps(value).encode() for value in values) + (b"\n" if ends else b"")
    made = b"".join(parsing.lines_to_array(cut(body, places)))
    assert json.loads(made) == values and made.endswith(b"\n")


def test_a_line_of_many_chunks_is_put_together_once() -> None:
    """Else a row of many megabytes would be copied for each of its chunks."""
    chunk = b"x" * 64
    count = 100_000
    (line,) = parsing.iter_lines(chunk for _ in range(count))
    assert len(line) == 64 * count


@pytest.mark.parametrize("body", [b"", b"\n", b"\n\n", b"  "])
def test_nothing_has_no_lines(body: bytes) -> None:
    assert list(parsing.iter_lines([body])) == []


@pytest.mark.parametrize("text", ["{}", '{"a": [1]}', b'{"a": null}'])
def test_objects_are_parsed(text: str | bytes) -> None:
    assert parsing.parse_object(text) == json.loads(text)


@pytest.mark.parametrize("text", ["[]", "1", "null", '"x"', "", "{", "<html>", b"\xff\xfe{}x"])
def test_what_is_no_object_is_refused_with_its_text(text: str | bytes) -> None:
    with pytest.raises(BrokenResponseError, match="but the server sent: ") as caught:
        parsing.parse_object(text)
    assert repr(text) in caught.value.message


def test_a_long_answer_is_cut_in_the_error() -> None:
    with pytest.raises(BrokenResponseError) as caught:
        parsing.parse_object("<html>" + "x" * 100_000)
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    ("body", "key", "expected"),
    [
        ("[]", "", []),
        ('[{"a": 1}]', "", [{"a": 1}]),
        ('{"data": [{"a": 1}], "object": "list"}', "data", [{"a": 1}]),
        ('[{"a": 1}]', "data", [{"a": 1}]),
    ],
)
def test_lists_are_found_with_and_without_an_object(
    body: str, key: str, expected: list[object]
) -> None:
    assert parsing.parse_list(body, key) == expected


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ("{}", ""), ('{"data": 1}', "data"), ("{}", "data"), ('{"other": []}', "data"),
        ("null", ""), ("", ""), ("[1, 2]", ""), ('[{"a": 1}, null]', ""), ('["x"]', "data"),
    ],
)  # fmt: skip
def test_what_is_no_list_of_objects_is_refused(body: str, key: str) -> None:
    with pytest.raises(BrokenResponseError, match=r"expected .*JSON"):
        parsing.parse_list(body, key)
