"""Reads and writes append-only logs in their table."""

import sqlite3
from collections.abc import Sequence

from caraway_plugins.stores.sqlite.file import transaction


def append(connection: sqlite3.Connection, log: str, record: bytes) -> int:
    """Append a record and return its position, counted from 0."""
    name = log.encode()
    with transaction(connection):
        (position,) = connection.execute(
            "SELECT coalesce(max(position) + 1, 0) FROM logs WHERE log = ?", (name,)
        ).fetchone()
        connection.execute("INSERT INTO logs VALUES (?, ?, ?)", (name, position, record))
    return int(position)


def read(connection: sqlite3.Connection, log: str, start: int, limit: int) -> Sequence[bytes]:
    """Return up to `limit` records, starting at a position."""
    # SQLite treats a negative limit as no limit.
    rows = connection.execute(
        "SELECT record FROM logs WHERE log = ? AND position >= ? ORDER BY position LIMIT ?",
        (log.encode(), start, max(limit, 0)),
    )
    return [record for (record,) in rows]
