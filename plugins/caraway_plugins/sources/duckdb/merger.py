"""Merges rows into tables of DuckDB files. Statements that change one row at once fail."""

from collections.abc import Sequence

from caraway_plugins.sources.database_merges import DatabaseMerge
from caraway_plugins.sources.duckdb.creator import TYPES
from caraway_plugins.sources.duckdb.writer import DuckdbInsert, quoted

_NUMBER = "rowid"


class DuckdbMerge(DatabaseMerge, DuckdbInsert):
    """A MERGE by UPDATE ... FROM, DELETE and INSERT."""

    temporary = "caraway_rows"
    types = TYPES

    def _quote(self, name: str) -> str:
        return quoted(name)

    def _count(self, sql: str) -> int:
        return int(self._connection.execute(sql).fetchone()[0])

    def _found(self, sql: str) -> bool:
        return self._connection.execute(sql).fetchone() is not None

    def _found_by(self) -> Sequence[str]:
        if any(each.name.lower() == _NUMBER for each in self._table.columns):
            raise self._refused(f"its column '{_NUMBER}' hides the numbers of its rows")
        return (_NUMBER,)
