"""The base of what merges rows into a table of a database, in one transaction.

The rows go into a temporary table, whose columns have the types of the table. Which of them the
table has is found out before the first row is changed. Where the clause of a row depends on the
table, too, so are the rows of each clause, with the new values: no statement reads those of
another.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

import pyarrow as pa

from caraway_core.errors import InvalidQueryError
from caraway_core.protocols.remote import (
    ADDED,
    ROW_ALIAS,
    TABLE_ALIAS,
    TAKEN,
    MergeKey,
    MergeStep,
    TableMerge,
)
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.database_tables import TypeNames
from caraway_plugins.sources.database_writes import DatabaseInsert

_IS_THERE = "row is there"


class DatabaseMerge(DatabaseInsert):
    """A MERGE. A class with the INSERT of its database as its other base fills the table."""

    verb = "MERGE into"
    done = "changed"
    temporary: ClassVar[str]
    """The name of the table of rows, in SQL."""
    types: ClassVar[TypeNames]
    """The types of columns that the table has not."""
    type_options: ClassVar[str] = ""
    """The end of the definition of a table with such types."""
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

    @abstractmethod
    def _found_by(self) -> Sequence[str]:
        """Return the columns in SQL of which no two rows of the table have the same values."""

    def _read(self) -> tuple[str, str]:
        """Return what is read as `TABLE_ALIAS` in FROM, and the alias of the table itself."""
        return f"{self._target} {TABLE_ALIAS}", TABLE_ALIAS

    def _written(self, rows: Iterator[pa.RecordBatch]) -> int:
        self._make_rows()
        self._inserted(rows)
        self._lock()
        table, own = self._read() if self._merge.is_paired else (f"{self._target} t", "t")
        self._run(
            f"UPDATE {self.temporary} AS {ROW_ALIAS} SET {self._quote(_IS_THERE)} = 1 WHERE EXISTS "
            f"(SELECT 1 FROM {table} WHERE {self._equal(own)})"
        )
        # Rows are deleted first, so that their keys are free.
        if self._merge.is_paired:
            count = self._paired(table, own)
        else:
            self._refuse_twice()
            # Keys are never set, so what one statement changes is no row of another.
            steps = sorted(self._merge.taken, key=lambda step: bool(step.sets))
            count = sum(self._count(self._changing(step)) for step in steps)
        return count + sum(self._count(self._adding(step)) for step in self._merge.added)

    def _paired(self, table: str, own: str) -> int:
        """Change the rows of the table, after those of each clause are found."""
        key = self._found_by()
        both = f"{table} JOIN {self.temporary} {ROW_ALIAS} ON {self._equal(own)}"
        rows = f"SELECT 1 FROM {self.temporary} {ROW_ALIAS} WHERE {self._equal(own)}"
        changes: list[tuple[str, MergeStep]] = []
        for steps, source, test in (
            (self._merge.taken, both, ""),
            (self._merge.left, table, f"NOT EXISTS ({rows}) AND "),
        ):
            cases = (f"WHEN {each.condition or '1 = 1'} THEN {each.number}" for each in steps)
            chosen = f"CASE {' '.join(cases)} END"
            for each in steps:
                name = f"{self.temporary}_{len(changes)}"
                columns = [f"{own}.{column} AS key{n}" for n, column in enumerate(key)]
                columns += (
                    f"{sql} AS value{n}" for n, (_, sql) in enumerate(self._values_of(each))
                )
                rows_of = f"SELECT {', '.join(columns)} FROM {source}"
                query = f"{rows_of} WHERE {test}{chosen} = {each.number}"
                self._run(self.create.format(name, query))
                changes.append((name, each))
        self._refuse_pairs([name for name, _ in changes], key)
        changes.sort(key=lambda change: bool(self._values_of(change[1])))
        return sum(self._count(self._change(*each, key)) for each in changes)

    def _values_of(self, step: MergeStep) -> Sequence[tuple[str, str]]:
        """Return the columns that a step sets, with SQL over a pair of rows."""
        rows = ((column, f"{ROW_ALIAS}.{self._quote(name)}") for column, name in step.sets)
        return (*rows, *step.computed)

    def _change(self, name: str, step: MergeStep, key: Sequence[str]) -> str:
        """Return the statement that changes the rows that are found for a step."""
        values = self._values_of(step)
        if not values:
            own = ", ".join(f"{self._target}.{each}" for each in key)
            found = ", ".join(f"key{n}" for n in range(len(key)))
            own = f"({own})" if len(key) > 1 else own
            return f"DELETE FROM {self._target} WHERE {own} IN (SELECT {found} FROM {name})"
        sets = ", ".join(
            f"{self._quote(column)} = {name}.value{n}" for n, (column, _) in enumerate(values)
        )
        same = " AND ".join(f"{self._target}.{each} = {name}.key{n}" for n, each in enumerate(key))
        return f"UPDATE {self._target} SET {sets} FROM {name} WHERE {same}"

    def _refuse_pairs(self, names: Sequence[str], key: Sequence[str]) -> None:
        """Refuse rows of the table that are found twice.

        Raises:
            InvalidQueryError: there are some.
        """
        keys = ", ".join(f"key{n}" for n in range(len(key)))
        every = " UNION ALL ".join(f"SELECT {keys} FROM {name}" for name in names)
        if names and self._found(
            f"SELECT count(*) FROM ({every}) p GROUP BY {keys} HAVING count(*) > 1 LIMIT 1"
        ):
            raise self._twice()

    def _make_rows(self) -> None:
        """Create the table of rows."""
        others = [each for each in self._columns if each.name not in self._of_table]
        if others:
            listed = ", ".join(f"{self._quote(each.name)} {self._type(each)}" for each in others)
            self._run(f"CREATE TEMPORARY TABLE {self._types} ({listed}){self.type_options}")
        self._run(self.create.format(self.temporary, self._shape(others)))

    @property
    def _types(self) -> str:
        """The table without rows whose columns have types that the table has not."""
        return f"{self.temporary}_types"

    @property
    def _of_table(self) -> frozenset[str]:
        return frozenset((*self._merge.columns, TAKEN, ADDED))

    def _type(self, field: pa.Field) -> str:
        name = self.types.name_of(field.type)
        if name is None:
            raise self._refused(f"it has no type for a value of the source, {field.type}; cast it")
        return name

    def _shape(self, others: Sequence[pa.Field]) -> str:
        """Return a query without rows: its columns have the types of the table, and may be NULL."""
        columns = [
            f"t.{self._quote(self._merge.columns[name])} AS {self._quote(name)}"
            for name in self._columns.names
            if name in self._merge.columns
        ]
        columns += (f"x.{self._quote(each.name)}" for each in others)
        numbers = (f"NULLIF(0, 0) AS {self._quote(name)}" for name in (TAKEN, ADDED, _IS_THERE))
        every = ", ".join((*columns, *numbers))
        typed = f" LEFT JOIN {self._types} x ON 1 = 0" if others else ""
        return (
            f"SELECT {every} FROM (SELECT 1 AS one) o LEFT JOIN {self._target} t ON 1 = 0{typed} "
            "WHERE 1 = 0"
        )

    def _equal(self, target: str, row: str = ROW_ALIAS) -> str:
        """Return the condition that two rows are the same, each with the name of its table."""
        tests = [self._same(f"{target}.", f"{row}.", each) for each in self._merge.keys]
        return " AND ".join([*tests, *filter(None, [self._merge.match])])

    def _same(self, target: str, row: str, key: MergeKey) -> str:
        own, value = target + self._quote(key.column), row + self._quote(key.row_column)
        same = self.same or key.same
        test = f"{same.format(own)} = {same.format(value)}"
        # The first test can use an index.
        return f"{own} = {value} AND {test}" if "(" in same else test

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
        where = f"{self._equal(self._target, self.temporary)} AND {self._is_of(TAKEN, step)}"
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
