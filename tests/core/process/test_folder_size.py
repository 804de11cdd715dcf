import asyncio
import os
from pathlib import Path

import pytest

from caraway_core.process import folder_size
from caraway_core.process.folder_size import FolderSize
from tests.kit import deadlines


async def test_all_files_count_by_what_they_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The parts end within the folders, too.
    monkeypatch.setattr(folder_size, "_ENTRIES_AT_ONCE", 2)
    measured = FolderSize(tmp_path / "data")
    assert await measured.measure() == 0
    for number in range(3):
        folder = tmp_path / "data" / "x" / str(number)
        folder.mkdir(parents=True)
        (folder / "rows").write_bytes(os.urandom(100_000))
    (tmp_path / "far").write_bytes(os.urandom(1_000_000))
    (tmp_path / "data" / "link").symlink_to(tmp_path / "far")
    (tmp_path / "data" / "loop").symlink_to(tmp_path / "data")
    with (tmp_path / "data" / "holes").open("wb") as file:
        file.truncate(1_000_000_000)
    assert 300_000 <= await measured.measure() < 500_000


async def test_it_is_measured_again(tmp_path: Path) -> None:
    measured = FolderSize(tmp_path, every_s=0)
    assert measured.last is None
    running = asyncio.create_task(measured.run())

    async def is_measured(least: int) -> bool:
        return measured.last is not None and measured.last >= least

    await deadlines.eventually(lambda: is_measured(0), "a first size")
    (tmp_path / "rows").write_bytes(os.urandom(100_000))
    await deadlines.eventually(lambda: is_measured(100_000), "a larger size")
    running.cancel()
