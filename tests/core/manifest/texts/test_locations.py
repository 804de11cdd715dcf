"""Places for results are read as a folder, a bucket or a store, and never with credentials."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.manifest.texts import locations
from caraway_core.manifest.texts.locations import StateLocation


@pytest.mark.parametrize(
    ("text", "scheme", "path"),
    [
        ("/a/b", "file", "/a/b"), ("a/b", "file", "a/b"), ("", "file", ""), ("a b", "file", "a b"),
        ("file:///a", "file", "/a"), ("file:/a", "file", "/a"), ("file:a/b", "file", "a/b"),
        ("file:////a", "file", "/a"), ("s3://b", "s3", "b"), ("s3://b/", "s3", "b"),
        ("s3://b/p/q/", "s3", "b/p/q"), ("S3://b/P", "s3", "b/P"),
        ("gs://b_1/x y", "gs", "b_1/x y"),
        ("abfss://c@a.dfs.core.windows.net/p", "abfss", "c@a.dfs.core.windows.net/p"),
        ("caraway://host:9000/p", "caraway", "host:9000/p"),
        ("caraway://[::1]:1", "caraway", "[::1]:1"), ("s3://b/..a/b..", "s3", "b/..a/b.."),
    ],
)  # fmt: skip
def test_locations(text: str, scheme: str, path: str) -> None:
    assert locations.split(text) == StateLocation(scheme, path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("s3:b", "names no bucket; write s3://bucket/prefix"), ("s3://", "names no bucket"),
        ("s3:///b", "names no bucket"), ("s3:/b", "names no bucket"),
        ("caraway:///p", "names no store; write caraway://HOST:PORT/PREFIX"),
        ("caraway://host", "'host' is no HOST:PORT"), ("caraway://host:0/p", "is no HOST:PORT"),
        ("caraway://host:65536", "is no HOST:PORT"), ("caraway://h:x", "is no HOST:PORT"),
        ("caraway://::1:80", "is no HOST:PORT"), ("s3://b/../x", "'../x' is no plain prefix"),
        ("s3://b/./x", "is no plain prefix"), ("s3://b//x", "is no plain prefix"),
        ("s3://b/x/...", "is no plain prefix"), ("s3://b?x=1", "is no name of a bucket"),
        ("s3://b#x/p", "is no name of a bucket"), ("s3://b b/p", "is no name of a bucket"),
        ("s3://b/a\nb", "cannot be printed"), ("s3://b/a\0", "cannot be printed"),
        ("ftp://h/x", "no kind of location 'ftp'"), ("c:\\x", "no kind of location 'c'"),
        ("memory:x", "no kind of location"), ("file:", "names no folder"),
        ("file:///", "names no folder"), ("file://host/a", "'host' stands where a host would"),
    ],
)  # fmt: skip
def test_what_is_no_location(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        locations.split(text)


@pytest.mark.parametrize("scheme", ["s3", "gs", "caraway"])
def test_credentials_are_refused_and_not_shown(scheme: str) -> None:
    with pytest.raises(ValueError, match="credentials belong into 'params'") as caught:
        locations.split(f"{scheme}://key:hunter2@bucket/p")
    assert "hunter2" not in str(caught.value)


def test_a_folder_is_absolute_and_without_dots(tmp_path: Path) -> None:
    assert locations.absolute("a/../b", tmp_path) == str(tmp_path / "b")
    assert locations.absolute("file:b", tmp_path) == str(tmp_path / "b")
    assert locations.absolute("/x//y/.", tmp_path) == "/x/y"
    assert locations.absolute("~/x", tmp_path) == str(Path.home() / "x")
    assert locations.absolute("S3://b/p/", tmp_path) == "s3://b/p"


@given(st.text(st.sampled_from("s3://@:ab.?#\n\0 "), max_size=14) | st.text(max_size=10))
def test_any_text_is_a_location_or_none(text: str) -> None:
    try:
        found = locations.split(text)
    except ValueError:
        return
    if found.scheme != "file":
        written = f"{found.scheme}://{found.path}"
        assert locations.split(written) == found
        assert "\n" not in written and ".." not in found.path.split("/")
