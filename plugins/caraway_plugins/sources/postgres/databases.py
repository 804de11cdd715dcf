"""Opens connections to PostgreSQL, and keeps what the driver reads of a database when it is opened.

The driver reads all types and columns of a database before the first statement. With 10,000 tables
this takes seconds, so connections with one login share it.
"""

import threading
from collections.abc import Mapping
from typing import Any

import adbc_driver_postgresql
from adbc_driver_manager import AdbcConnection, AdbcDatabase, dbapi

from caraway_plugins.sources.idle_connections import Login

_LONGEST_UNUSED_S = 3_600.0


class Databases:
    """The databases that were opened, by login."""

    def __init__(self) -> None:
        self._kept: dict[Login, _Database] = {}
        self._lock = threading.Lock()

    def connect(self, login: Mapping[str, str], now_s: float) -> Any:
        """Open a connection.

        Raises:
            dbapi.Error: it cannot be opened.
        """
        with self._lock:
            kept = self._kept.setdefault(frozenset(login.items()), _Database())
            kept.use(now_s)
        try:
            opened = kept.opened(conninfo(login))
            return dbapi.Connection(kept, AdbcConnection(opened), autocommit=True)
        except BaseException:
            kept.close()
            raise

    def close_unused(self, now_s: float) -> None:
        """Close databases that were not used for long, for example since a password was changed."""
        oldest_s = now_s - _LONGEST_UNUSED_S
        with self._lock:
            unused = {
                login: each
                for login, each in self._kept.items()
                if not each.connections and each.used_s < oldest_s
            }
            for login in unused:
                del self._kept[login]
        for each in unused.values():
            each.end()


class _Database:
    """A database that stays open when its connections are closed."""

    def __init__(self) -> None:
        self.used_s = 0.0
        self.connections = 0
        self._database: AdbcDatabase | None = None
        self._opening = threading.Lock()
        self._counting = threading.Lock()

    def use(self, now_s: float) -> None:
        with self._counting:
            self.used_s = now_s
            self.connections += 1

    def opened(self, text: str) -> AdbcDatabase:
        with self._opening:
            if self._database is None:
                self._database = adbc_driver_postgresql.connect(text)
            return self._database

    def close(self) -> None:
        """Note that a connection was closed: it closes its database, which is this object."""
        with self._counting:
            self.connections -= 1

    def end(self) -> None:
        if self._database is not None:
            self._database.close()


def conninfo(login: Mapping[str, str]) -> str:
    """Return the connection string of a login for libpq."""
    return " ".join(f"{name}={_quoted(value)}" for name, value in login.items())


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
