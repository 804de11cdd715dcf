"""The embedded state store, in one SQLite file; the only package that imports sqlite3."""

from caraway_plugins.stores.sqlite.store import SqliteStateStore

__all__ = ["SqliteStateStore"]
