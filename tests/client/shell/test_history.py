from pathlib import Path

from prompt_toolkit.history import FileHistory, InMemoryHistory

from caraway.shell.history import history_path, open_history


def test_the_history_path_follows_the_xdg_specification() -> None:
    assert history_path("/state", Path("/home/a")) == Path("/state/caraway/history")
    assert history_path("", Path("/home/a")) == Path("/home/a/.caraway/history")


def test_the_history_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "history"

    assert isinstance(open_history(path), FileHistory)
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_history_stays_in_memory_if_it_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert isinstance(open_history(tmp_path / "file" / "history"), InMemoryHistory)
