"""Merges rows into tables of SQLite files, which one statement writes at a time."""

from caraway_plugins.sources.database_merges import DatabaseMerge
from caraway_plugins.sources.sqlite.writer import SqliteInsert, quoted


class SqliteMerge(DatabaseMerge, SqliteInsert):
    """A MERGE by UPDATE ... FROM, DELETE and INSERT."""

    temporary = "caraway_rows"
    same = "{} COLLATE BINARY"

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
