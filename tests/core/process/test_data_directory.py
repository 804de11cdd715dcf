from pathlib import Path

import pytest

from caraway_core.errors import CarawayError
from caraway_core.process.data_directory import DataDirectory
from tests.kit.disks import disk_with_room_for


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with DataDirectory(Path("data")) as data:
        assert data.cache == tmp_path / "data" / "cache"
        assert data.cache.is_dir()


def test_id_that_a_full_disk_left_empty_is_made_again(tmp_path: Path) -> None:
    with DataDirectory(tmp_path) as data:
        (tmp_path / "node-id").touch()
        made = data.node_id
        assert made
        assert data.node_id == made


def test_id_that_cannot_be_written_is_told_in_one_sentence(tmp_path: Path) -> None:
    with DataDirectory(tmp_path) as data, disk_with_room_for(8):
        with pytest.raises(CarawayError, match="free space there"):
            _ = data.node_id
    with DataDirectory(tmp_path) as data:
        assert len(data.node_id) == 36


def test_id_that_is_no_text_is_made_again(tmp_path: Path) -> None:
    with DataDirectory(tmp_path) as data:
        (tmp_path / "node-id").write_bytes(b"\xff\xfe\x00")
        made = data.node_id
        assert len(made) == 36 and data.node_id == made


def test_a_directory_is_used_by_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        DataDirectory(tmp_path),
        pytest.raises(CarawayError, match="is in use by another process"),
        DataDirectory(tmp_path),
    ):
        pass
    with DataDirectory(tmp_path):
        pass
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(CarawayError, match="Not a directory; choose one"),
        DataDirectory(tmp_path / "file" / "inner"),
    ):
        pass
