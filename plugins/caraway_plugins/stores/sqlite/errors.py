"""What SQLite and the operating system report, said so that the user knows what to do."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from caraway_core.errors import CarawayError

_DAMAGED = (
    "the file is damaged: stop every process that uses it, move it away together with its "
    "-wal and -shm files, or put a backup in its place, and start again"
)
_NO_ACCESS = "give user {user} the right to write to the file and to its folder, then start again"
_FULL = "the disk is full: free space on it; nothing that was stored before is lost"
_BUSY = "another process holds the file locked: find it with `fuser {path}` and stop it"
_BROKEN_DISK = "check the disk and the system log; the state store needs a local file system"
_TOO_BIG = "the value is larger than SQLite can hold: store less under one key"
_UNKNOWN = "this is a defect of Caraway: please report it with this message"

_ADVICE = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_CANTOPEN: _NO_ACCESS,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: _BROKEN_DISK,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_NOLFS: _BROKEN_DISK,
    sqlite3.SQLITE_NOMEM: "the process is out of memory: raise its memory limit",
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_PERM: _NO_ACCESS,
    sqlite3.SQLITE_PROTOCOL: _BUSY,
    sqlite3.SQLITE_READONLY: _NO_ACCESS,
    sqlite3.SQLITE_TOOBIG: _TOO_BIG,
}


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the engine's errors into ours.

    Raises:
        CarawayError: SQLite or the file system failed.
    """
    try:
        yield
    except (sqlite3.Error, OSError) as exc:
        raise CarawayError(f"state store {path}: {exc}; {_advice(path, exc)}") from exc


def _advice(path: Path, exc: sqlite3.Error | OSError) -> str:
    if isinstance(exc, OSError):
        template = _NO_ACCESS
    else:
        # Extended codes carry the primary one in the low byte; errors of the sqlite3 module
        # itself carry none.
        code = getattr(exc, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        template = _ADVICE.get(code & 0xFF, _UNKNOWN)
    return template.format(user=os.geteuid(), path=path)
