"""Where the lines of earlier sessions are kept."""

from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory


def history_path(state_home: str, home: Path) -> Path:
    """`$XDG_STATE_HOME/caraway/history`, or `~/.caraway/history` when that is not set."""
    return Path(state_home) / "caraway" / "history" if state_home else home / ".caraway" / "history"


def open_history(path: Path) -> History:
    """The history in `path`, readable by its owner only: statements may hold secrets."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        # A read-only home, as in many containers, is no reason not to open.
        return InMemoryHistory()
    return FileHistory(str(path))
