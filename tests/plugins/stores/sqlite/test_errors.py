"""Errors of SQLite files: which pass, and the advice for each."""

import errno
import os
import sqlite3
from pathlib import Path

import pytest

from caraway_core.errors import CarawayError, StateAwayError, StateFullError
from caraway_core.process import disks
from caraway_plugins.stores.sqlite import errors


def failure(code: int) -> sqlite3.OperationalError:
    made = sqlite3.OperationalError("it failed")
    made.sqlite_errorcode = code
    return made


@pytest.mark.parametrize(
    ("error", "kind", "advice"),
    [
        (failure(sqlite3.SQLITE_FULL), StateFullError, "free space"),
        (failure(sqlite3.SQLITE_BUSY), StateAwayError, "fuser /data/state.db"),
        (failure(sqlite3.SQLITE_BUSY_SNAPSHOT), StateAwayError, "fuser /data/state.db"),
        (failure(sqlite3.SQLITE_IOERR_READ), StateAwayError, "check the disk"),
        (failure(sqlite3.SQLITE_CANTOPEN), StateAwayError, f"user {os.geteuid()} permission"),
        (failure(sqlite3.SQLITE_READONLY_DBMOVED), StateAwayError, "permission"),
        (failure(sqlite3.SQLITE_NOMEM), StateAwayError, "memory limit"),
        (failure(sqlite3.SQLITE_CORRUPT), CarawayError, "is damaged"),
        (failure(sqlite3.SQLITE_NOTADB), CarawayError, "is damaged"),
        (failure(sqlite3.SQLITE_TOOBIG), CarawayError, "store less"),
        (failure(sqlite3.SQLITE_MISUSE), CarawayError, "defect of Caraway"),
        (sqlite3.ProgrammingError("closed"), CarawayError, "closed; this is a defect"),
        (OSError(errno.ENOSPC, "no space"), StateFullError, "free space"),
        (OSError(errno.EDQUOT, "quota"), StateFullError, "free space"),
        (OSError(errno.EACCES, "denied"), StateAwayError, "permission"),
    ],
)
def test_errors(error: Exception, kind: type[CarawayError], advice: str) -> None:
    with pytest.raises(kind, match=advice) as caught, errors.explained(Path("/data/state.db")):
        raise error
    assert type(caught.value) is kind
    assert caught.value.message.startswith("state store /data/state.db: ")


@pytest.mark.parametrize(("has_no_room", "kind"), [(True, StateFullError), (False, StateAwayError)])
def test_a_failed_write_may_mean_a_full_disk(
    has_no_room: bool, kind: type[CarawayError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disks, "has_no_room", lambda _folder: has_no_room)
    with pytest.raises(kind), errors.explained(Path("/data/state.db")):
        raise failure(sqlite3.SQLITE_IOERR_WRITE)


def test_a_real_file_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    file.write_bytes(b"not a database, but longer than a page header" * 20)
    with pytest.raises(CarawayError, match="is damaged"), errors.explained(file):
        sqlite3.connect(file).execute("SELECT * FROM sqlite_master")


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError), errors.explained(Path("x")):
        raise KeyError("a")
