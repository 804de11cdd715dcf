from pathlib import Path

import pytest

from caraway_core.data_directory import DataDirectory


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with DataDirectory(Path("data")) as data:
        assert data.cache == tmp_path / "data" / "cache"
        assert data.cache.is_dir()
