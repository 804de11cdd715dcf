"""Merges rows into tables of DuckDB files. Statements that change one row at once fail."""

from caraway_plugins.sources.database_merges import DatabaseMerge
from caraway_plugins.sources.duckdb.writer import DuckdbInsert, quoted


class DuckdbMerge(DatabaseMerge, DuckdbInsert):
    """A MERGE by UPDATE ... FROM, DELETE and INSERT."""

    temporary = "caraway_rows"

    def _quote(self, name: str) -> str:
        return quoted(name)

    def _count(self, sql: str) -> int:
        return int(self._connection.execute(sql).fetchone()[0])

    def _found(self, sql: str) -> bool:
        return self._connection.execute(sql).fetchone() is not None
