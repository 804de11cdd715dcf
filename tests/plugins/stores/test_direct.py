"""Direct I/O: files of every length are complete, on any file system."""

import errno
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import pytest

from caraway_plugins.stores.direct import past_cache

MIB = 1024 * 1024


def written(path: Path, pieces: Sequence[bytes]) -> bytes:
    with path.open("xb") as target:
        with past_cache(target) as file:
            assert [file.write(piece) for piece in pieces] == [*map(len, pieces)]
        assert target.tell() == sum(map(len, pieces))
        assert not fcntl.fcntl(target.fileno(), fcntl.F_GETFL) & os.O_DIRECT
    return path.read_bytes()


@pytest.mark.parametrize(
    "sizes",
    [
        [],
        [1],
        [4096],
        [4095, 1],
        [4097],
        [MIB],
        [MIB + 1],
        [MIB - 1, 2],
        [3 * MIB + 5000],
        [7] * 999,
    ],
    ids=str,
)
def test_what_is_written_is_there(tmp_path: Path, sizes: list[int]) -> None:
    pieces = [os.urandom(size) for size in sizes]
    assert written(tmp_path / "file", pieces) == b"".join(pieces)


def test_whole_blocks_go_past_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulates O_DIRECT: the flag is recorded, and not set on the real file."""
    seen: list[tuple[int, bool]] = []
    write, control, direct = os.write, fcntl.fcntl, 0

    def controlled(descriptor: int, command: int, flags: int = 0) -> int:
        nonlocal direct
        if command == fcntl.F_SETFL:
            direct = flags & os.O_DIRECT
            return control(descriptor, command, flags & ~os.O_DIRECT)
        return control(descriptor, command, flags) | direct

    def watched(descriptor: int, block: bytes) -> int:
        seen.append((len(block), bool(direct)))
        return write(descriptor, block)

    monkeypatch.setattr(fcntl, "fcntl", controlled)
    monkeypatch.setattr(os, "write", watched)
    content = os.urandom(MIB + 4096 * 3 + 10)
    assert written(tmp_path / "file", [content]) == content
    assert seen == [(MIB, True), (4096 * 3, True), (10, False)]


@pytest.mark.parametrize("refused", ["at once", "when it is written"])
def test_file_systems_that_cannot_are_written_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    if refused == "at once":
        control = fcntl.fcntl

        def controlled(descriptor: int, command: int, flags: int = 0) -> int:
            if flags & os.O_DIRECT:
                raise OSError(errno.EINVAL, "Invalid argument")
            return control(descriptor, command, flags)

        monkeypatch.setattr(fcntl, "fcntl", controlled)
    else:
        write = os.write

        def picky(descriptor: int, block: bytes) -> int:
            if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT:
                raise OSError(errno.EINVAL, "Invalid argument")
            return write(descriptor, block)

        monkeypatch.setattr(os, "write", picky)
    content = os.urandom(2 * MIB + 10)
    assert written(tmp_path / "file", [content]) == content


@pytest.mark.parametrize("most", [4096, 5000, 1])
def test_writes_that_end_early_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, block: write(descriptor, block[:most]))
    content = os.urandom(30_000)
    assert written(tmp_path / "file", [content]) == content


def test_failure_leaves_the_file_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int, _block: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def fill(target: BinaryIO) -> None:
        with past_cache(target) as file:
            file.write(bytes(2 * MIB))

    with (tmp_path / "file").open("xb") as target:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            fill(target)
        monkeypatch.undo()
        assert not fcntl.fcntl(target.fileno(), fcntl.F_GETFL) & os.O_DIRECT
        target.write(b"more")
    # The buffer of the thread can be used again.
    assert written(tmp_path / "another", [b"x" * 10]) == b"x" * 10
