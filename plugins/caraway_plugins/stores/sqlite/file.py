"""Opens the file of the store, creates its tables, and runs transactions."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from caraway_core.errors import CarawayError

RESERVES_BYTES = (256 * 1024, 128 * 1024, 64 * 1024)
"""Sizes of the reserve file, the largest that fits; the -wal and -shm files need 45 KiB."""
BUSY_TIMEOUT_S = 30.0
APPLICATION_ID = int.from_bytes(b"CRWY")
FORMAT_VERSION = 1

_TABLES = (
    # One row. `revision` is the last one assigned; tombstones up to `forgotten` are removed.
    "CREATE TABLE store (revision INTEGER NOT NULL, forgotten INTEGER NOT NULL)",
    "INSERT INTO store VALUES (0, 0)",
    # Keys are UTF-8 blobs, compared bytewise, which is code point order. The value NULL is a
    # tombstone, kept until `expires_at` for watchers.
    """CREATE TABLE entries (
        key BLOB PRIMARY KEY, value BLOB, revision INTEGER NOT NULL, expires_at REAL
    )""",
    "CREATE INDEX entries_by_revision ON entries (revision)",
    "CREATE INDEX entries_by_expiry ON entries (expires_at) WHERE expires_at IS NOT NULL",
    """CREATE TABLE logs (
        log BLOB NOT NULL, position INTEGER NOT NULL, record BLOB NOT NULL,
        PRIMARY KEY (log, position)
    )""",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT_VERSION}",
)


def open_file(path: Path) -> sqlite3.Connection:
    """Open the store at the path; create it if it does not exist.

    Raises:
        CarawayError: the file belongs to another application, or to another version of Caraway.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(path):
        try:
            connection = _opened(path)
        except sqlite3.OperationalError:
            # The disk may be full, and SQLite creates two files next to the store when it opens it.
            if not _release(path):
                raise
            connection = _opened(path)
        reserve(path)
    return connection


def reserve(path: Path) -> None:
    """Reserve disk space for the next opening of the store, if there is any."""
    file = _reserve_of(path)
    if file.exists():
        return
    for size_bytes in RESERVES_BYTES:
        try:
            with file.open("xb") as handle:
                os.posix_fallocate(handle.fileno(), 0, size_bytes)
            return
        except OSError:
            file.unlink(missing_ok=True)


def _release(path: Path) -> bool:
    """Release the reserved disk space; return whether there was any."""
    file = _reserve_of(path)
    was_there = file.exists()
    file.unlink(missing_ok=True)
    return was_there


def _reserve_of(path: Path) -> Path:
    return path.with_name(path.name + "-reserve")


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """Commit at the end of the block, or roll back if it fails."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let one process at a time open the file.

    SQLite reports "locked" without waiting if two processes switch a file to WAL mode concurrently.
    The kernel releases the lock of a process that dies.
    """
    lock = os.open(path.with_name(path.name + "-lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # Checked before any change, because the file may belong to another application.
    _check_owner(connection, path)
    mode = _number_or_text(connection, "PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise CarawayError(
            f"state store {path}: the file system cannot share memory between processes, which "
            "the write-ahead log needs; put the file on a local disk"
        )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    with transaction(connection):
        if _number_or_text(connection, "PRAGMA application_id") == 0:
            for statement in _TABLES:
                connection.execute(statement)
        # Detects a read-only file now rather than later; BEGIN alone does not.
        connection.execute("UPDATE store SET revision = revision")


def _check_owner(connection: sqlite3.Connection, path: Path) -> None:
    tables = _number_or_text(connection, "SELECT count(*) FROM sqlite_master")
    if tables and _number_or_text(connection, "PRAGMA application_id") != APPLICATION_ID:
        raise CarawayError(
            f"state store {path}: this is the database of another application; "
            "give another path for the state store"
        )
    version = _number_or_text(connection, "PRAGMA user_version")
    if tables and version != FORMAT_VERSION:
        raise CarawayError(
            f"state store {path}: format {version} is not the format {FORMAT_VERSION} of this "
            "version of Caraway; run the version that wrote it, or give another path"
        )


def _number_or_text(connection: sqlite3.Connection, sql: str) -> int | str:
    (answer,) = connection.execute(sql).fetchone()
    if not isinstance(answer, int | str):
        raise TypeError(f"{sql} returned {answer!r}")
    return answer
