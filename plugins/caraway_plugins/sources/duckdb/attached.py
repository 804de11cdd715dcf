"""Files that a DuckDB of this process reads and writes; each is open only while statements do.

A DuckDB takes some 20 ms to start, and attaching a file to it 1 to 2 ms.
"""

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import duckdb

from caraway_core.tables import RemoteTable
from caraway_plugins.sources.duckdb import beside

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": "2",
    "memory_limit": "1GB",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
}
"""Those of all DuckDBs of this process."""
_MOST_KEPT = 16
_WAIT_S = 10.0
"""For so long a statement that writes waits for those that read, and new ones for it."""
_BUSY_S = 2.0
"""For so long a statement that reads waits for another process that writes."""
_AGAIN_S = 0.02
_TAKEN = frozenset({"memory", "system", "temp"})
"""Names of databases that each DuckDB has."""


class AttachedFile:
    """A DuckDB that reads and writes one file, and no other."""

    def __init__(self, path: str) -> None:
        stem = Path(path).stem
        self._path = path
        self._name = _quoted(f"{stem}_file" if stem.lower() in _TAKEN else stem, '"')
        self._changed = threading.Condition()
        self._mode = ""
        self._cursors = self._writers = 0
        self._base = duckdb.connect(":memory:", config=_SETTINGS)
        files = (path, *(beside.beside(path, each) for each in beside.LOGS))
        allowed = ", ".join(_quoted(each, "'") for each in files)
        self._base.execute(f"SET allowed_paths = [{allowed}]")
        self._base.execute("SET enable_external_access = false")
        self._base.execute("SET GLOBAL TimeZone = 'UTC'")
        self.users = 0

    def cursor(self, *, is_writing: bool = False) -> duckdb.DuckDBPyConnection:
        """Return a connection to the file, which is attached unless it is already.

        Raises:
            duckdb.Error: another process writes it, or others read it for too long.
        """
        with self._changed:
            if is_writing:
                self._make_writable()
            elif not self._changed.wait_for(lambda: not self._writers, _WAIT_S):
                raise duckdb.IOException("Could not set lock: a statement waits to write")
            if not self._mode:
                self._attach("READ_ONLY", _BUSY_S)
            cursor = self._base.cursor()
            cursor.execute(f"USE {self._name}")
            self._cursors += 1
            return cursor

    def leave(self, cursor: duckdb.DuckDBPyConnection | None) -> None:
        """Close a connection; after the last one, let others write the file."""
        with self._changed:
            if cursor is not None:
                with suppress(duckdb.Error):
                    cursor.close()
                self._cursors -= 1
            if not self._cursors and self._mode:
                with suppress(duckdb.Error):  # The next one to leave tries again.
                    self._detach()
            self._changed.notify_all()
        _left(self)

    def _make_writable(self) -> None:
        """Attach the file to write to it, after those have left that read it."""
        self._writers += 1
        try:
            while self._mode != "READ_WRITE":
                if not self._changed.wait_for(self._may_write, _WAIT_S):
                    raise duckdb.IOException("others read it")
                if self._mode:
                    self._detach()
                self._attach("READ_WRITE", _WAIT_S)
        finally:
            self._writers -= 1
            self._changed.notify_all()

    def _may_write(self) -> bool:
        return not self._cursors or self._mode == "READ_WRITE"

    def _attach(self, mode: str, longest_s: float) -> None:
        """Attach the file, after another process has left it that holds its lock."""
        sql = f"ATTACH {_quoted(self._path, chr(39))} AS {self._name} ({mode})"
        end_s = time.monotonic() + longest_s
        while True:
            try:
                self._base.execute(sql)
            except duckdb.Error as exc:
                if not is_busy(exc) or time.monotonic() > end_s:
                    raise
                self._changed.wait(_AGAIN_S)
                if self._mode:  # Another thread has attached it.
                    return
            else:
                self._mode = mode
                return

    def _detach(self) -> None:
        self._base.execute(f"DETACH {self._name}")
        self._mode = ""

    def close(self) -> None:
        """Close the DuckDB."""
        self._base.close()


class FileStatement:
    """A statement over a file, which uses the DuckDB of the file until it ends."""

    stop_again_s: ClassVar[float] = 0.1
    _table: RemoteTable
    _connection: Any
    _file: AttachedFile | None = None

    def _attach(self, *, is_writing: bool = False) -> duckdb.DuckDBPyConnection:
        self._file = taken(self._table.login["path"])
        self._connection = cursor = self._file.cursor(is_writing=is_writing)
        return cursor

    def _stop(self) -> None:
        if (connection := self._connection) is not None:
            with suppress(duckdb.Error):
                connection.interrupt()

    def _drop(self) -> None:
        if self._file is not None:
            self._file.leave(self._connection)
        self._file = self._connection = None


_kept: dict[str, AttachedFile] = {}
_kept_lock = threading.Lock()


def taken(path: str) -> AttachedFile:
    """Return the DuckDB of a file, which is kept until `leave` was called as often as this.

    Raises:
        duckdb.Error: it cannot be started.
    """
    with _kept_lock:
        file = _kept.pop(path, None) or AttachedFile(path)
        _kept[path] = file
        file.users += 1
        for other, each in list(_kept.items())[: max(0, len(_kept) - _MOST_KEPT)]:
            if each.users == 0:
                _kept.pop(other).close()
        return file


def is_busy(exc: duckdb.Error) -> bool:
    """Return whether an error means that another process or DuckDB has the file open."""
    return "Could not set lock" in str(exc) or "file handle conflict" in str(exc)


def _left(file: AttachedFile) -> None:
    with _kept_lock:
        file.users -= 1


def _quoted(text: str, quote: str) -> str:
    return quote + text.replace(quote, quote * 2) + quote
