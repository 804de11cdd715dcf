"""Merges rows into tables of SQLite files, which one statement writes at a time."""

from collections.abc import Sequence

from caraway_core.protocols.remote import TABLE_ALIAS
from caraway_plugins.sources.database_merges import DatabaseMerge
from caraway_plugins.sources.sqlite.creator import TYPES
from caraway_plugins.sources.sqlite.writer import KEY, SqliteInsert, quoted


class SqliteMerge(DatabaseMerge, SqliteInsert):
    """A MERGE by UPDATE ... FROM, DELETE and INSERT."""

    temporary = "caraway_rows"
    types = TYPES
    same = "{} COLLATE BINARY"
    _number = ""

    def _quote(self, name: str) -> str:
        return quoted(name)

    def _count(self, sql: str) -> int:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            cursor.execute("SELECT changes()")
            return int(cursor.fetchone()[0])

    def _found(self, sql: str) -> bool:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchone() is not None

    def _found_by(self) -> Sequence[str]:
        return (self._number,)

    def _read(self) -> tuple[str, str]:
        self._number, view = self._shown()
        table = (
            f"{self._target} k JOIN {view} {TABLE_ALIAS} ON {TABLE_ALIAS}.{KEY} = k.{self._number}"
        )
        return table, "k"
