"""The history file of the shell."""

from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory


def history_path(state_home: str, home: Path) -> Path:
    """Return `$XDG_STATE_HOME/caraway/history`, or `~/.caraway/history` if that is not set."""
    return Path(state_home) / "caraway" / "history" if state_home else home / ".caraway" / "history"


def open_history(path: Path) -> History:
    """Open the history at `path`, readable by its owner only: statements may contain secrets."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        # Many containers have a read-only home directory; the shell works without a history file.
        return InMemoryHistory()
    return FileHistory(str(path))
