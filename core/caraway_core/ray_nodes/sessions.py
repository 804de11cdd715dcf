"""Manages Ray's session folders, which hold logs and sockets and must have short paths."""

import os
import shutil
import tempfile
from pathlib import Path

_SOCKET_PATH_LIMIT = 107
_SESSION = len("/session_2026-01-01_00-00-00_000000_1234567/sockets/plasma_store.1")
_NOTE = "session-folder"


def open_session(folder: Path) -> Path:
    """Create a session folder in the given folder, or in the temporary folder if that is too long.

    A leftover of an earlier process is removed first.
    """
    close_session(folder)
    folder.mkdir(parents=True, exist_ok=True)
    session = folder.absolute() / "s"
    if len(os.fsencode(session)) + _SESSION > _SOCKET_PATH_LIMIT:
        session = Path(tempfile.mkdtemp(prefix="caraway-", dir=_short_folder()))
    (folder / _NOTE).write_text(str(session))
    session.mkdir(exist_ok=True, mode=0o700)
    return session


def close_session(folder: Path) -> None:
    """Remove the session folder that was created for this folder."""
    note = folder / _NOTE
    if note.exists():
        shutil.rmtree(note.read_text(), ignore_errors=True)
        note.unlink(missing_ok=True)


def _short_folder() -> str:
    system = tempfile.gettempdir()
    room = _SOCKET_PATH_LIMIT - _SESSION - len("/caraway-12345678")
    return system if len(os.fsencode(system)) <= room else "/tmp"
