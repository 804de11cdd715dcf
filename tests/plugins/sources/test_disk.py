"""Files that are written to a disk are there as a whole after a crash."""

import io
from pathlib import Path

import pytest

from caraway_core.errors import DatasetError
from caraway_plugins.sources.disk import Disk
from caraway_plugins.stores import durable


def test_the_names_of_a_file_and_of_its_folder_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(durable, "sync_folder", synced.append)
    path = tmp_path / "table" / "data" / "a.parquet"
    Disk().write(str(path), io.BytesIO(b"rows"))
    assert path.read_bytes() == b"rows"
    assert synced == [path.parent, path.parent.parent]


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"before")
    with pytest.raises(DatasetError, match="cannot be written"):
        Disk().write(str(path), io.BytesIO(b"after"))
    assert path.read_bytes() == b"before"


def test_a_file_is_deleted_once(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x")
    for _ in range(2):
        Disk().delete(str(path))
    assert not path.exists()
