"""Converts errors of SQLite and the operating system to errors with advice for users."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from caraway_core.errors import CarawayError, StateAwayError, StateFullError
from caraway_core.process import disks

_DAMAGED = (
    "the file is damaged: stop every process that uses it, move it away together with its "
    "-wal and -shm files, or put a backup in its place, and start again"
)
_NO_ACCESS = "give user {user} permission to write to the file and to its folder, then start again"
_FULL = "the disk is full: free space on it; nothing that was stored before is lost"
_BUSY = "another process holds the file locked: find it with `fuser {path}` and stop it"
_BROKEN_DISK = "check the disk and the system log; the state store needs a local file system"
_TOO_BIG = "the value is larger than SQLite allows: store less under one key"
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


# A retry may succeed once the disk is repaired or another process ends.
_PASSING = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Convert SQLite errors to errors of the state store.

    Raises:
        StateFullError: the disk is full.
        StateAwayError: the disk fails, access is denied, or another process locks the file.
        CarawayError: the file is damaged, or the call was invalid.
    """
    try:
        yield
    except sqlite3.Error as exc:
        # Extended codes have the primary code in the low byte; errors that the sqlite3 module
        # raises itself have none.
        code = getattr(exc, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        # SQLite reports "disk I/O error" if it cannot create its -wal and -shm files.
        is_full = code == sqlite3.SQLITE_IOERR and disks.has_no_room(path.parent)
        is_full = is_full or code == sqlite3.SQLITE_FULL
        advice = _FULL if is_full else _ADVICE.get(code, _UNKNOWN)
        text = _worded(path, str(exc), advice)
        if is_full:
            raise StateFullError(text) from exc
        raise (StateAwayError if code in _PASSING else CarawayError)(text) from exc
    except OSError as exc:
        if disks.is_full(exc):
            raise StateFullError(_worded(path, str(exc), _FULL)) from exc
        raise StateAwayError(_worded(path, str(exc), _NO_ACCESS)) from exc


def _worded(path: Path, cause: str, advice: str) -> str:
    return f"state store {path}: {cause}; {advice.format(user=os.geteuid(), path=path)}"
