"""The starts of text files: all members of an archive, and no more than is needed."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import zstandard

from caraway_core.errors import DatasetError
from caraway_core.tables import Compression
from caraway_plugins.sources import samples
from caraway_plugins.sources.samples import FileSample
from caraway_plugins.sources.storage import FoundFile

PACKS: dict[Compression, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda content: zstandard.ZstdCompressor().compress(content),
}
LARGE = 10**9


@dataclass
class Kept:
    """Keeps one file in memory, and the ranges that were read."""

    content: bytes
    read_bytes: list[int] = field(default_factory=list)

    def read(self, _path: str, start: int, end: int) -> bytes:
        self.read_bytes.append(end - start)
        return self.content[start:end]

    def title(self, path: str) -> str:
        return f"store/{path}"


def head(content: bytes, compression: Compression = "", limit: int = LARGE) -> FileSample:
    storage: Any = Kept(content)
    return samples.head(storage, FoundFile("a", len(content), "1"), compression, limit)


@pytest.mark.parametrize("compression", PACKS)
def test_whole_files(compression: Compression) -> None:
    pack = PACKS[compression]
    assert head(pack(b"a,b\n1,2\n"), compression) == FileSample("a,b\n1,2\n", True)
    assert head(pack(b""), compression) == FileSample("", True)


@pytest.mark.parametrize("compression", PACKS)
def test_members_follow_each_other(compression: Compression) -> None:
    """A line, or a character, may be in two of them."""
    pack = PACKS[compression]
    parts = [b"a\n1\n", "2é".encode()[:-1], "é".encode()[-1:], b"", b"\n3.5\n"]
    content = b"".join(map(pack, parts))
    assert head(content, compression) == FileSample("a\n1\n2é\n3.5\n", True)


@pytest.mark.parametrize("compression", PACKS)
def test_members_may_end_anywhere_in_what_is_read(
    compression: Compression, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"".join(PACKS[compression](f"{number}\n".encode()) for number in range(30))
    text = "".join(f"{number}\n" for number in range(30))
    for size in (1, 2, 7, 50):
        monkeypatch.setattr(samples, "_PIECE", size)
        monkeypatch.setattr(samples, "_CHUNK", 3 * size + 1)
        assert head(content, compression) == FileSample(text, True)


@pytest.mark.parametrize("compression", PACKS)
def test_zeros_may_fill_the_rest_of_a_file(compression: Compression) -> None:
    assert head(PACKS[compression](b"a\n") + b"\0" * 512, compression).text == "a\n"


@pytest.mark.parametrize("compression", PACKS)
def test_few_bytes_that_stand_for_many_are_not_all_unpacked(
    compression: Compression, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = PACKS[compression](b"a" * 60_000_000)
    most = 0
    unpack = samples._Members.unpack

    def counted(members: samples._Members, data: bytes) -> bytes:
        nonlocal most
        found = unpack(members, data)
        most = max(most, len(found))
        return found

    monkeypatch.setattr(samples._Members, "unpack", counted)
    found = head(content, compression, 1_000)
    assert (found.text, found.is_whole) == ("a" * 1_000, False)
    assert most <= 50 * 10**6


@pytest.mark.parametrize("compression", ["", *PACKS])
def test_samples_are_as_long_as_the_limit(compression: Compression) -> None:
    content = PACKS.get(compression, bytes)(b"abc")
    assert head(content, compression, 4) == FileSample("abc", True)
    assert head(content, compression, 3) == FileSample("abc", True)
    assert head(content, compression, 2) == FileSample("ab", False)


def test_a_character_at_the_end_of_a_sample_is_left_out() -> None:
    assert head("aé€😀".encode(), limit=9).text == "aé€"
    assert head("aé".encode(), limit=2).text == "a"


def test_marks_are_told() -> None:
    assert head(b"\xef\xbb\xbfa") == FileSample("a", True, True)


@pytest.mark.parametrize("content", [b"\xff", b"a\xe9b", "é".encode()[:1], b"a" * 99 + b"\xff"])
def test_other_texts(content: bytes) -> None:
    with pytest.raises(DatasetError, match="'store/a' is not UTF-8 text"):
        head(content)


@pytest.mark.parametrize("compression", PACKS)
def test_damaged_archives(compression: Compression) -> None:
    whole = PACKS[compression](bytes(range(32, 127)) * 50)
    for content in (
        b"a,b\n1,2\n",
        whole[:10] + b"\xff" * 40,
        whole + b"garbage at the end",
        whole[:-1],
    ):
        with pytest.raises(DatasetError, match=f"'store/a' is not {compression} data"):
            head(content, compression)


def test_no_more_is_read_than_is_needed() -> None:
    storage: Any = Kept(b"a" * 10**6)
    samples.head(storage, FoundFile("a", 10**6, "1"), "", 300_000)
    assert storage.read_bytes == [256 * 1024, 256 * 1024]
