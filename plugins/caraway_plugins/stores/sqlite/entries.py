"""Reads and writes entries: lookup, compare-and-set, expiry, and changes since a revision.

Expiry is a deletion: it gets a new revision, and leaves a tombstone for watchers. Tombstones are
removed after an hour.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from caraway_core.protocols.state import StateEntry
from caraway_plugins.stores.sqlite.file import transaction
from caraway_plugins.stores.watching import TRACE_KEPT_S, ChangePage

PAGE_ENTRIES = 256
SWEPT_AT_ONCE = 256

_LIVE = "value IS NOT NULL AND (expires_at IS NULL OR expires_at > :now)"
_UNDER = "key >= :low AND (:high IS NULL OR key < :high)"


@dataclass(frozen=True, slots=True)
class ConditionalWrite:
    """The arguments of a compare-and-set; the value None deletes."""

    key: str
    value: bytes | None
    expected: int | None
    ttl_s: float | None


def get(connection: sqlite3.Connection, key: str, now: float) -> StateEntry | None:
    """Return the live entry of the key, or None."""
    rows = connection.execute(
        f"SELECT key, value, revision FROM entries WHERE key = :key AND {_LIVE}",
        {"key": key.encode(), "now": now},
    ).fetchall()
    return _entry(rows[0]) if rows else None


def revisions(connection: sqlite3.Connection, keys: Sequence[str], now: float) -> list[int]:
    """Return the revision of each key's live entry, or 0."""
    found: list[int] = []
    for key in keys:
        rows = connection.execute(
            f"SELECT revision FROM entries WHERE key = :key AND {_LIVE}",
            {"key": key.encode(), "now": now},
        ).fetchall()
        found.append(rows[0][0] if rows else 0)
    return found


def scan(connection: sqlite3.Connection, prefix: str, now: float) -> Sequence[StateEntry]:
    """Return the live entries with the prefix, in key order."""
    rows = connection.execute(
        f"SELECT key, value, revision FROM entries WHERE {_UNDER} AND {_LIVE} ORDER BY key",
        {**_bounds(prefix), "now": now},
    )
    return [_entry(row) for row in rows]


def compare_and_set(
    connection: sqlite3.Connection, write: ConditionalWrite, now: float
) -> int | None:
    """Write or delete an entry if its revision is the expected one; return the new revision."""
    with transaction(connection):
        _sweep(connection, now)
        standing = get(connection, write.key, now)
        if (standing.revision if standing else None) != write.expected:
            return None
        key = write.key.encode()
        if write.value is None:
            return _delete(connection, key, now)
        expires_at = None if write.ttl_s is None else now + write.ttl_s
        return _put(connection, key, write.value, expires_at)


def sweep(connection: sqlite3.Connection, now: float) -> None:
    """Delete expired entries, and remove old tombstones."""
    with transaction(connection):
        _sweep(connection, now)


def revision(connection: sqlite3.Connection) -> int:
    """Return the last revision that was assigned."""
    return _counters(connection)[0]


def changes(connection: sqlite3.Connection, prefix: str, after: int, now: float) -> ChangePage:
    """Return the newest entry of each key that changed after the revision."""
    with transaction(connection, "DEFERRED"):
        upto, forgotten = _counters(connection)
        rows = connection.execute(
            "SELECT key, coalesce(value, x''), revision FROM entries "
            f"WHERE revision > :after AND {_UNDER} AND (value IS NULL OR {_LIVE}) "
            "ORDER BY revision LIMIT :limit",
            {**_bounds(prefix), "after": after, "now": now, "limit": PAGE_ENTRIES},
        ).fetchall()
        entries = [_entry(row) for row in rows]
        if len(entries) == PAGE_ENTRIES:
            upto = entries[-1].revision
        return ChangePage(entries, upto, forgotten)


def _sweep(connection: sqlite3.Connection, now: float) -> None:
    due = connection.execute(
        "SELECT key, value IS NULL, revision FROM entries "
        "WHERE expires_at <= ? ORDER BY expires_at LIMIT ?",
        (now, SWEPT_AT_ONCE),
    ).fetchall()
    for key, is_trace, at in due:
        if is_trace:
            connection.execute("DELETE FROM entries WHERE key = ?", (key,))
            connection.execute("UPDATE store SET forgotten = max(forgotten, ?)", (at,))
        else:
            _delete(connection, key, now)


def _delete(connection: sqlite3.Connection, key: bytes, now: float) -> int:
    return _put(connection, key, None, now + TRACE_KEPT_S)


def _put(
    connection: sqlite3.Connection, key: bytes, value: bytes | None, expires_at: float | None
) -> int:
    connection.execute("UPDATE store SET revision = revision + 1")
    given = revision(connection)
    connection.execute(
        "INSERT OR REPLACE INTO entries (key, value, revision, expires_at) VALUES (?, ?, ?, ?)",
        (key, value, given, expires_at),
    )
    return given


def _counters(connection: sqlite3.Connection) -> tuple[int, int]:
    last, forgotten = connection.execute("SELECT revision, forgotten FROM store").fetchone()
    return last, forgotten


def is_sweep_due(connection: sqlite3.Connection, now: float) -> bool:
    """Return whether an expired entry has not been deleted yet."""
    cursor = connection.execute(
        "SELECT 1 FROM entries WHERE expires_at <= ? AND value IS NOT NULL LIMIT 1", (now,)
    )
    return cursor.fetchone() is not None


def _bounds(prefix: str) -> dict[str, bytes | None]:
    low = prefix.encode()
    # No byte of UTF-8 is 0xFF, so the last byte can always be incremented.
    high = low[:-1] + bytes([low[-1] + 1]) if low else None
    return {"low": low, "high": high}


def _entry(row: tuple[bytes, bytes, int]) -> StateEntry:
    key, value, at = row
    return StateEntry(key.decode(), value, at)
