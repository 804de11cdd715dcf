"""JSON pointers, and nested objects that become columns."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import DatasetError
from caraway_plugins.sources.api import pointers

DOCUMENT: dict[str, Any] = {
    "": 0, "a": {"b": [10, {"c": 1}], "": 2}, "x/y": 3, "m~n": 4, "~1": 5, "0": 6, "null": None
}  # fmt: skip


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT), ("/", 0), ("/a/b/0", 10), ("/a/b/1/c", 1), ("/a/", 2), ("/x~1y", 3),
        ("/m~0n", 4), ("/~01", 5), ("/0", 6), ("/null", None),
    ],
)  # fmt: skip
def test_a_pointer_finds_a_value(pointer: str, value: object) -> None:
    assert pointers.check(pointer, "p") == pointer
    assert pointers.find(DOCUMENT, pointer) == value


@pytest.mark.parametrize(
    "pointer",
    ["/b", "/a/b/2", "/a/b/-1", "/a/b/00", "/a/b/-", "/a/b/x", "/a/b/0/0", "/null/a", "/a/b/²",
     "/a/b/9999999999"],
)  # fmt: skip
def test_a_pointer_may_lead_nowhere(pointer: str) -> None:
    with pytest.raises(LookupError):
        pointers.find(DOCUMENT, pointer)


@pytest.mark.parametrize("text", ["a", "a/b", " /a", "/~", "/~2", "/a~", "#/a"])
def test_what_is_no_pointer_is_refused(text: str) -> None:
    with pytest.raises(DatasetError, match=r"params\.p is '.*'; a JSON pointer is '' or begins"):
        pointers.check(text, "p")


@given(st.lists(st.text(st.sampled_from("a~/1"), max_size=3), max_size=3))
def test_each_name_can_be_written(names: list[str]) -> None:
    value: object = "here"
    for name in reversed(names):
        value = {name: value}
    pointer = "".join("/" + each.replace("~", "~0").replace("/", "~1") for each in names)
    assert pointers.steps(pointers.check(pointer, "p")) == names
    assert pointers.find(value, pointer) == "here"


@pytest.mark.parametrize(
    ("value", "pointer", "rows"),
    [
        ([{"a": 1}, {}], "", [{"a": 1}, {}]),
        ({"d": {"a": 1}}, "/d", [{"a": 1}]),
        ({"d": []}, "/d", []),
        ({"d": None}, "/d", []),
        (None, "", []),
    ],
)
def test_rows_are_the_objects_at_a_pointer(value: Any, pointer: str, rows: list[Any]) -> None:
    assert pointers.rows(value, pointer, "t") == rows


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "an answer of 't' has nothing at '/d'; check json_pointer"),
        ([], "an answer of 't' has nothing at '/d'"),
        ("text", "an answer of 't' has nothing at '/d'"),
        ({"d": 1}, "has values at '/d' that are not objects"),
        ({"d": [{}, 1]}, "has values at '/d' that are not objects"),
        ({"d": [[{}]]}, "has values at '/d' that are not objects"),
        ({"d": [None]}, "has values at '/d' that are not objects"),
    ],
)
def test_what_has_no_rows_is_told(value: Any, message: str) -> None:
    with pytest.raises(DatasetError, match=message) as caught:
        pointers.rows(value, "/d", "t")
    assert caught.value.type == "schema"


@pytest.mark.parametrize(
    ("depth", "row", "unnested"),
    [
        (0, {"a": {"b": 1}}, {"a": {"b": 1}}),
        (1, {"a": {"b": 1}, "c": 2}, {"b": 1, "c": 2}),
        (1, {"a": {"b": {"d": 1}}}, {"b": {"d": 1}}),
        (2, {"a": {"b": {"d": 1}}}, {"d": 1}),
        (9, {"a": {"b": {}}, "c": [{"e": 1}]}, {"c": [{"e": 1}]}),
    ],
)
def test_nested_objects_become_columns_down_to_a_depth(
    depth: int, row: dict[str, Any], unnested: dict[str, Any]
) -> None:
    assert pointers.unnested(row, depth, "t") == unnested


@pytest.mark.parametrize("row", [{"a": {"b": 1}, "b": 2}, {"a": {"b": 1}, "c": {"b": 2}}])
def test_a_name_that_would_stand_twice_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(DatasetError, match="rows of 't' have the name 'b' twice"):
        pointers.unnested(row, 1, "t")
