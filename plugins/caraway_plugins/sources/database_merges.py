"""The base of what merges rows into a table of a database, in one transaction.

The rows go into a temporary table, whose columns have the types of the table. Which of them the
table has is found out before the first row is changed.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import pyarrow as pa

from caraway_core.errors import InvalidQueryError
from caraway_core.protocols.remote import ADDED, TAKEN, MergeStep, TableMerge
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.database_writes import DatabaseInsert

_IS_THERE = "row is there"


class DatabaseMerge(DatabaseInsert):
    """A MERGE. A class with the INSERT of its database as its other base fills the table."""

    verb = "MERGE into"
    done = "changed"
    temporary: ClassVar[str]
    """The name of the table of rows, in SQL."""
    create: ClassVar[str] = "CREATE TEMPORARY TABLE {} AS {}"
    same: ClassVar[str | None] = None
    """The template of what is equal of two values, where it is not that of the merge."""

    def __init__(self, table: RemoteTable, columns: pa.Schema, merge: TableMerge) -> None:
        """Take the table, the columns of the rows, and what becomes of them."""
        super().__init__(table, columns)
        self._merge = merge

    @property
    def _relation(self) -> str:
        return self.temporary

    @abstractmethod
    def _quote(self, name: str) -> str:
        """Return a name as it is written in statements."""

    @abstractmethod
    def _count(self, sql: str) -> int:
        """Run a statement, and return how many rows it has changed."""

    @abstractmethod
    def _found(self, sql: str) -> bool:
        """Return whether a query has a row."""

    def _lock(self) -> None:
        """Keep others from changing the table, or have one of the two fail."""

    def _written(self, rows: Iterator[pa.RecordBatch]) -> int:
        self._run(self.create.format(self.temporary, self._shape()))
        self._inserted(rows)
        self._lock()
        there = self._quote(_IS_THERE)
        self._run(f"UPDATE {self.temporary} SET {there} = 1 WHERE {self._has('t')}")
        self._refuse_twice()
        # Keys are never set, so what one statement changes is no row of another.
        steps = sorted(self._merge.taken, key=lambda step: bool(step.sets))
        count = sum(self._count(self._changing(step)) for step in steps)
        return count + sum(self._count(self._adding(step)) for step in self._merge.added)

    def _shape(self) -> str:
        """Return a query without rows: its columns have the types of the table, and may be NULL."""
        columns = [
            f"t.{self._quote(self._merge.columns[name])} AS {self._quote(name)}"
            for name in self._columns.names
            if name in self._merge.columns
        ]
        numbers = (f"NULLIF(0, 0) AS {self._quote(name)}" for name in (TAKEN, ADDED, _IS_THERE))
        every = ", ".join((*columns, *numbers))
        return (
            f"SELECT {every} FROM (SELECT 1 AS one) o LEFT JOIN {self._target} t ON 1 = 0 "
            "WHERE 1 = 0"
        )

    def _equal(self, target: str) -> str:
        """Return the condition that a row is one of the table, which has this name."""
        tests = []
        for key in self._merge.keys:
            own, row = (
                f"{target}.{self._quote(key.column)}",
                f"{self.temporary}.{self._quote(key.row_column)}",
            )
            same = self.same or key.same
            if "(" in same:  # The first test can use an index.
                tests.append(f"{own} = {row}")
            tests.append(f"{same.format(own)} = {same.format(row)}")
        return " AND ".join(tests)

    def _has(self, target: str) -> str:
        return f"EXISTS (SELECT 1 FROM {self._target} {target} WHERE {self._equal(target)})"

    def _refuse_twice(self) -> None:
        """Refuse rows of which several would change one row of the table.

        Raises:
            InvalidQueryError: there are some.
        """
        keys = ", ".join(
            (self.same or each.same).format(self._quote(each.row_column))
            for each in self._merge.keys
        )
        if self._merge.taken and self._found(
            f"SELECT count(*) FROM {self.temporary} WHERE {self._quote(_IS_THERE)} = 1 "
            f"AND {self._quote(TAKEN)} IS NOT NULL GROUP BY {keys} HAVING count(*) > 1 LIMIT 1"
        ):
            raise self._twice()

    def _twice(self) -> InvalidQueryError:
        return self._refused("a row would be changed by more than one row of the source")

    def _changing(self, step: MergeStep) -> str:
        """Return the statement that changes or deletes the rows of a clause."""
        where = f"{self._equal(self._target)} AND {self._is_of(TAKEN, step)}"
        if not step.sets:
            return (
                f"DELETE FROM {self._target} WHERE EXISTS (SELECT 1 FROM {self.temporary} "
                f"WHERE {where})"
            )
        sets = ", ".join(
            f"{self._quote(column)} = {self.temporary}.{self._quote(name)}"
            for column, name in step.sets
        )
        return f"UPDATE {self._target} SET {sets} FROM {self.temporary} WHERE {where}"

    def _adding(self, step: MergeStep) -> str:
        """Return the statement that inserts the rows of a clause."""
        columns = ", ".join(self._quote(column) for column, _ in step.sets)
        values = ", ".join(self._quote(name) for _, name in step.sets)
        return (
            f"INSERT INTO {self._target} ({columns}) SELECT {values} FROM {self.temporary} "
            f"WHERE {self._is_of(ADDED, step)} AND {self._quote(_IS_THERE)} IS NULL"
        )

    def _is_of(self, kind: str, step: MergeStep) -> str:
        return f"{self.temporary}.{self._quote(kind)} = {step.number}"
