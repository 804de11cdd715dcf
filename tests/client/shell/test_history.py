from pathlib import Path

from prompt_toolkit.history import FileHistory, InMemoryHistory

from caraway.shell.history import history_path, open_history


def test_the_history_follows_the_desktop_rules() -> None:
    assert history_path("/state", Path("/home/a")) == Path("/state/caraway/history")
    assert history_path("", Path("/home/a")) == Path("/home/a/.caraway/history")


def test_only_its_owner_reads_the_history(tmp_path: Path) -> None:
    path = tmp_path / "new" / "history"

    assert isinstance(open_history(path), FileHistory)
    assert path.stat().st_mode & 0o777 == 0o600


def test_without_a_place_for_it_the_history_is_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert isinstance(open_history(tmp_path / "file" / "history"), InMemoryHistory)
