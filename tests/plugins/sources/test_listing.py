"""Paths and patterns: which files they stand for, on disks with odd names."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from caraway_core.errors import DatasetError
from caraway_core.tables import StoreSpec
from caraway_plugins.sources import listing
from caraway_plugins.sources.disk import Disk
from caraway_plugins.sources.storage import FoundFile


class _Names:
    """Files that exist only by name."""

    store: StoreSpec | None = None
    has_folders = True

    def __init__(self, *names: str) -> None:
        self._names = names

    def listing(self, folder: str) -> Iterator[FoundFile]:
        yield from (FoundFile(n, 1, "s") for n in self._names if n.startswith(folder))

    def find(self, path: str) -> FoundFile | None:
        return FoundFile(path, 1, "s") if path in self._names else None

    def read(self, path: str, start: int, end: int) -> bytes:
        return b""

    def location(self, path: str) -> str:
        return path

    def title(self, path: str) -> str:
        return path


def _found(path: str, *names: str) -> list[str]:
    return [each.path for each in listing.look(_Names(*names), path).files]


FILES = ("d/a.csv", "d/b.csv", "d/sub/c.csv", "d/sub/deep/e.csv", "d/_x.csv", "d/.h/f.csv", "e.csv")


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("d/a.csv", ["d/a.csv"]),
        ("d/", ["d/a.csv", "d/b.csv", "d/sub/c.csv", "d/sub/deep/e.csv"]),
        ("d", ["d/a.csv", "d/b.csv", "d/sub/c.csv", "d/sub/deep/e.csv"]),
        ("d/*.csv", ["d/a.csv", "d/b.csv"]),
        ("d/**/*.csv", ["d/a.csv", "d/b.csv", "d/sub/c.csv", "d/sub/deep/e.csv"]),
        ("d/**/[c-e].csv", ["d/sub/c.csv", "d/sub/deep/e.csv"]),
        ("d/[!a].csv", ["d/b.csv"]),
        ("d/[^a].csv", ["d/b.csv"]),
        ("d/?.csv", ["d/a.csv", "d/b.csv"]),
        ("d/*/c.csv", ["d/sub/c.csv"]),
        ("d/_*.csv", ["d/_x.csv"]),
        ("d/.h/*.csv", ["d/.h/f.csv"]),
        ("**/e.csv", ["d/sub/deep/e.csv", "e.csv"]),
    ],
)
def test_a_path_stands_for_files(path: str, names: list[str]) -> None:
    assert _found(path, *FILES) == names


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("[+--]", "+,-", "*."),
        ("[b-a]", "", "ab-"),
        ("[a-]", "a-", "b"),
        ("[-a]", "a-", "b"),
        ("[a-c-e]", "abc-e", "d"),
        ("[--[]", "-0A[", "a\\"),
        ("[]-_]", "]^_", "[\\"),
        ("[[&&b]", "[&b", "a"),
        ("[\\d]", "\\d", "1"),
        ("[!a]", "b-!", "a/"),
        ("[.-0]", ".0", "/"),
        ("[!]", "!", "a"),
    ],
)
def test_a_class_stands_for_its_characters(pattern: str, matching: str, others: str) -> None:
    try:
        matches = re.compile(listing.glob_regex(pattern)).fullmatch
    except (DatasetError, re.error):
        assert not matching
    else:
        assert "".join(filter(matches, matching + others)) == matching


@given(st.text("ab*?[]!^-|&~\\.(+{$", max_size=8))
@example("[*--]")
@example("[a||b]")
def test_a_pattern_is_a_regular_expression_or_an_error(pattern: str) -> None:
    try:
        made = re.compile(listing.glob_regex(pattern))
    except DatasetError as exc:
        assert "[" in pattern and "'[" in exc.message
    except re.error:
        # A range such as [b-a]; `look` refuses it.
        assert "-" in pattern and "[" in pattern
    else:
        if not set(pattern) & set("*?["):
            assert made.fullmatch(pattern) and not made.fullmatch(pattern + "a")


@given(st.text(st.characters(exclude_characters="*?[/\0", exclude_categories=["Cs"]), min_size=1))
def test_a_name_without_special_characters_matches_itself_alone(name: str) -> None:
    matches = re.compile(listing.glob_regex(f"{name}*")).fullmatch
    assert matches(name) and matches(f"{name}.csv") and not matches(f"x{name}"[: len(name)] + "/")
    assert not matches(f"{name}/a")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("d/[z-a].csv", "the pattern '[z-a].csv' has a range that is empty"),
        ("d/[a.csv", "has a '[' without its ']'"),
        ("d/[].csv", "has an empty '[]'"),
        ("d/x*.csv", "no file matches 'd/x*.csv'"),
        ("nothing/", "'nothing/' is neither a file nor a folder with files"),
        ("d/\0", "cannot be the path of a file"),
        ("d/\udcff", "cannot be the path of a file"),
    ],
)
def test_wrong_paths_are_explained(path: str, says: str) -> None:
    with pytest.raises(DatasetError) as caught:
        listing.look(_Names(*FILES), path)
    assert says in caught.value.message


def test_the_fingerprint_changes_with_every_file() -> None:
    def of(*files: FoundFile) -> str:
        return listing.FileListing("d/", files, (), is_folder=True).fingerprint()

    one = FoundFile("d/a", 1, "s")
    others = [FoundFile("d/b", 1, "s"), FoundFile("d/a", 2, "s"), FoundFile("d/a", 1, "t")]
    assert len({of(one), of(), of(one, one), *map(of, others)}) == 6
    assert of(one) == of(FoundFile("d/a", 1, "s"))


def test_odd_names_on_a_disk_are_read_or_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    (tmp_path / "é 'x\"*.csv").touch()
    os.symlink("loop.csv", tmp_path / "loop.csv")
    os.symlink("nowhere.csv", tmp_path / "dangling.csv")
    os.symlink(".", tmp_path / "here")
    os.mkfifo(tmp_path / "pipe.csv")
    found = listing.look(Disk(), f"{tmp_path}/")
    assert [Path(each.path).name for each in found.files] == ["a.csv", "é 'x\"*.csv"]
    assert len(found.fingerprint()) == 64
    assert Disk().find(f"{tmp_path}/loop.csv") is None

    Path(os.fsdecode(bytes(tmp_path) + b"/\xff.csv")).touch()
    for path in (f"{tmp_path}/", f"{tmp_path}/*.csv"):
        with pytest.raises(DatasetError, match="is not UTF-8; rename the file"):
            listing.look(Disk(), path)
