"""Files of a cache folder: they are whole, or not there."""

from pathlib import Path
from typing import BinaryIO

import pytest

from caraway_plugins.sources import cached_files


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"old")

    def fill(stream: BinaryIO) -> None:
        stream.write(b"new ")
        assert file.read_bytes() == b"old"
        stream.write(b"content")

    cached_files.write(file, fill)
    assert file.read_bytes() == b"new content"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, error: BaseException) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"old")

    def fill(stream: BinaryIO) -> None:
        stream.write(b"half")
        raise error

    with pytest.raises(type(error)):
        cached_files.write(file, fill)
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_only_current_files_are_kept(tmp_path: Path) -> None:
    for name in ("a", "b", ".download-x"):
        (tmp_path / name).write_bytes(b"")
    cached_files.keep_only(tmp_path, {"a", "none"})
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    cached_files.keep_only(tmp_path, ())
    assert list(tmp_path.iterdir()) == []
