"""Files that a DuckDB of this process reads; each is open only while statements read it.

A DuckDB takes some 20 ms to start, and attaching a file to it 1 to 2 ms.
"""

import threading
from contextlib import suppress
from pathlib import Path

import duckdb

from caraway_plugins.sources.duckdb.settings import SETTINGS

_MOST_KEPT = 16
_TAKEN = frozenset({"memory", "system", "temp"})
"""Names of databases that each DuckDB has."""


class AttachedFile:
    """A DuckDB that reads one file, and no other."""

    def __init__(self, path: str) -> None:
        stem = Path(path).stem
        self._path = path
        self._name = _quoted(f"{stem}_file" if stem.lower() in _TAKEN else stem, '"')
        self._lock = threading.Lock()
        self._is_attached = False
        self._base = duckdb.connect(":memory:", config=SETTINGS)
        allowed = ", ".join(_quoted(each, "'") for each in (path, f"{path}.wal"))
        self._base.execute(f"SET allowed_paths = [{allowed}]")
        self._base.execute("SET enable_external_access = false")
        self._base.execute("SET GLOBAL TimeZone = 'UTC'")
        self.users = 0

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a connection to the file, which is attached unless it is already."""
        with self._lock:
            if not self._is_attached:
                self._base.execute(
                    f"ATTACH {_quoted(self._path, chr(39))} AS {self._name} (READ_ONLY)"
                )
                self._is_attached = True
            cursor = self._base.cursor()
        cursor.execute(f"USE {self._name}")
        return cursor

    def leave(self, cursor: duckdb.DuckDBPyConnection | None) -> None:
        """Close a connection; after the last one, let others write the file."""
        with self._lock:
            if cursor is not None:
                with suppress(duckdb.Error):
                    cursor.close()
            if _left(self) == 0 and self._is_attached:
                with suppress(duckdb.Error):  # The next one to leave tries again.
                    self._base.execute(f"DETACH {self._name}")
                    self._is_attached = False

    def close(self) -> None:
        """Close the DuckDB."""
        self._base.close()


_kept: dict[str, AttachedFile] = {}
_kept_lock = threading.Lock()


def taken(path: str) -> AttachedFile:
    """Return the DuckDB of a file, which is kept until `leave` was called as often as this.

    Raises:
        duckdb.Error: it cannot be started.
    """
    with _kept_lock:
        found = _kept.pop(path, None) or AttachedFile(path)
        _kept[path] = found
        found.users += 1
        for other, each in list(_kept.items())[: max(0, len(_kept) - _MOST_KEPT)]:
            if each.users == 0:
                _kept.pop(other).close()
        return found


def _left(file: AttachedFile) -> int:
    with _kept_lock:
        file.users -= 1
        return file.users


def _quoted(text: str, quote: str) -> str:
    return quote + text.replace(quote, quote * 2) + quote
