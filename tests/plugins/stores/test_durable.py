"""Files of results are there completely, or not at all."""

from pathlib import Path

import pytest

from caraway_plugins.stores import durable
from caraway_plugins.stores.durable import UnfinishedFiles


@pytest.fixture
def workshop(tmp_path: Path) -> UnfinishedFiles:
    files = UnfinishedFiles(tmp_path / "unfinished")
    assert files.open() == 0
    return files


def left(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "unfinished").iterdir())


def test_a_published_file_is_complete_at_its_place(
    workshop: UnfinishedFiles, tmp_path: Path
) -> None:
    target = tmp_path / "results" / "one"
    with workshop.unfinished() as handle:
        handle.write(b"rows")
        assert not target.exists()
        workshop.publish(handle, target)
    assert target.read_bytes() == b"rows"
    assert left(tmp_path) == []


def test_a_file_that_fails_leaves_nothing(workshop: UnfinishedFiles, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="full"), workshop.unfinished() as handle:
        handle.write(b"rows")
        raise OSError("full")
    assert left(tmp_path) == []
    workshop.try_out()
    assert left(tmp_path) == []


def test_files_of_the_dead_are_removed_and_those_of_the_living_stay(
    workshop: UnfinishedFiles, tmp_path: Path
) -> None:
    folder = tmp_path / "unfinished"
    (folder / "orphan").write_bytes(b"")
    (folder / "doomed" / "deep").mkdir(parents=True)
    with workshop.unfinished() as handle:
        assert UnfinishedFiles(folder).open() == 2
        assert left(tmp_path) == [Path(handle.name)]


def test_a_folder_is_discarded_with_its_files(workshop: UnfinishedFiles, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "part").write_bytes(b"rows")
    workshop.discard(folder)
    workshop.discard(folder)
    assert not folder.exists() and left(tmp_path) == []


def test_the_name_of_a_folder_is_synced_once_and_again_if_it_is_another(
    workshop: UnfinishedFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(durable, "sync_folder", synced.append)
    folder = tmp_path / "results"

    def publish(name: str) -> None:
        with workshop.unfinished() as handle:
            workshop.publish(handle, folder / name)

    publish("a")
    publish("b")
    assert synced == [folder, tmp_path, folder], "names of files always, that of the folder once"
    synced.clear()
    folder.rename(tmp_path / "moved")
    publish("c")
    assert synced == [folder, tmp_path]
