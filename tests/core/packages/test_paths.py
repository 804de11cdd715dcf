"""Paths of packages stay in their folder, and are good names on each system."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import InvalidRequestError
from caraway_core.packages import paths


@pytest.mark.parametrize(
    ("folder", "text", "path"),
    [
        ("", "a.yaml", "a.yaml"),
        ("", "./a//b/", "a/b"),
        ("a/b", "../c", "a/c"),
        ("a", ".hidden", "a/.hidden"),
        ("a", "ä b", "a/ä b"),
        ("", "a" * 200, "a" * 200),
    ],
)
def test_a_path_below_the_top(folder: str, text: str, path: str) -> None:
    assert paths.inside(folder, text, "it") == path


@pytest.mark.parametrize("text", ["", ".", "..", "../a", "a/../..", "/a", "//a", "b/../../../c"])
def test_a_path_that_leaves_the_top_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"^it must name a file in the folder"):
        paths.inside("", text, "it")


@pytest.mark.parametrize(
    "text",
    ["a\0", "a\n", "a\x7f", "a\\b", "c:", "a*", "a?", 'a"', "a<b", "a|b", "-a", "x/-a", "a.", "a ",
     "a./b", "a" * 201, "/".join(["ab"] * 200)],
)  # fmt: skip
def test_a_name_that_some_system_has_not_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"^it has characters that paths of packages"):
        paths.inside("", text, "it")


@given(st.text(st.sampled_from("a./\\-: \0~"), max_size=12))
def test_no_text_leaves_the_top(text: str) -> None:
    try:
        path = paths.inside("x", text, "it")
    except InvalidRequestError:
        return
    assert not path.startswith("/")
    assert not {"", ".", ".."} & set(path.split("/"))
