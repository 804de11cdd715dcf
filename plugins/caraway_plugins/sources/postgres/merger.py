"""Merges rows into tables of PostgreSQL, of all versions; MERGE is there since version 15 only."""

from collections.abc import Sequence

from caraway_plugins.sources.database_merges import DatabaseMerge
from caraway_plugins.sources.postgres.creator import TYPES
from caraway_plugins.sources.postgres.writer import PostgresInsert, quoted


class PostgresMerge(DatabaseMerge, PostgresInsert):
    """A MERGE while others only read the table."""

    temporary = "caraway_rows"
    types = TYPES
    create = "CREATE TEMPORARY TABLE {} ON COMMIT DROP AS {}"

    def _lock(self) -> None:
        self._run(f"LOCK TABLE {self._target} IN SHARE ROW EXCLUSIVE MODE")
        self._run(f"ANALYZE {self.temporary}")

    def _quote(self, name: str) -> str:
        return quoted(name)

    def _count(self, sql: str) -> int:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return int(cursor.rowcount)

    def _found(self, sql: str) -> bool:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchone() is not None

    def _found_by(self) -> Sequence[str]:
        # The second one is that of a row of one part of a table.
        return ("tableoid", "ctid")
