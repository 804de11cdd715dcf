"""Merges rows into tables of MySQL and MariaDB, which have no MERGE."""

from collections.abc import Sequence

from caraway_core.protocols.remote import TAKEN, MergeStep
from caraway_plugins.sources.database_merges import DatabaseMerge
from caraway_plugins.sources.mysql import connecting
from caraway_plugins.sources.mysql.creator import OPTIONS, TYPES
from caraway_plugins.sources.mysql.writer import MysqlInsert, quoted

_ENGINE = """
SELECT t.engine FROM information_schema.tables t
JOIN information_schema.engines e ON e.engine = t.engine AND e.transactions = 'YES'
WHERE t.table_schema = %s AND t.table_name = %s
"""
_KEY = """
SELECT column_name FROM information_schema.key_column_usage
WHERE constraint_name = 'PRIMARY' AND table_schema = %s AND table_name = %s
ORDER BY ordinal_position
"""
_ISOLATION = "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"


class MysqlMerge(DatabaseMerge, MysqlInsert):
    """A MERGE of tables with transactions. What it reads is locked until it ends."""

    create = "CREATE TEMPORARY TABLE {} {}"
    types = TYPES
    type_options = OPTIONS

    @property
    def temporary(self) -> str:  # type: ignore[override] # A connection may have no database.
        """The table of rows, which hides none that others see."""
        return f"{quoted(self._table.relation[0])}.caraway_rows"

    def _begin(self) -> None:
        super()._begin()
        if not connecting.run(self._connection, _ENGINE, *self._table.relation):
            raise self._refused("a view or a table without transactions cannot be merged into")
        for each in ("COMMIT", _ISOLATION, "BEGIN"):
            self._run(each)

    def _quote(self, name: str) -> str:
        return quoted(name)

    def _count(self, sql: str) -> int:
        with self._connection.cursor() as cursor:
            return int(cursor.execute(sql))

    def _found(self, sql: str) -> bool:
        return bool(connecting.run(self._connection, sql))

    def _changing(self, step: MergeStep) -> str:
        equal = self._equal("t", self.temporary)
        joined = f"{self._target} t JOIN {self.temporary} ON {equal}"
        where = f"WHERE {self._is_of(TAKEN, step)}"
        if not step.sets:
            return f"DELETE t FROM {joined} {where}"
        sets = ", ".join(
            f"t.{self._quote(column)} = {self.temporary}.{self._quote(name)}"
            for column, name in step.sets
        )
        return f"UPDATE {joined} SET {sets} {where}"

    def _found_by(self) -> Sequence[str]:
        key = connecting.run(self._connection, _KEY, *self._table.relation)
        if not key:
            raise self._refused(
                "what reads the table, and WHEN NOT MATCHED BY SOURCE, need a primary key"
            )
        return [quoted(name) for (name,) in key]

    def _change(self, name: str, step: MergeStep, key: Sequence[str]) -> str:
        same = " AND ".join(f"t.{each} = p.key{n}" for n, each in enumerate(key))
        joined = f"{self._target} t JOIN {name} p ON {same}"
        values = self._values_of(step)
        if not values:
            return f"DELETE t FROM {joined}"
        sets = (f"t.{self._quote(column)} = p.value{n}" for n, (column, _) in enumerate(values))
        return f"UPDATE {joined} SET {', '.join(sets)}"
