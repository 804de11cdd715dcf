"""Reading and writing tables that a database keeps: the engine generates the statements that read
them, and a plug-in sends them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa

from caraway_core.statements.definitions import TableDefinition
from caraway_core.tables import RemoteTable, TableSpec


class RemoteRows(Protocol):
    """Rows of a statement that runs in a database. Its methods block; one thread reads."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows with the types of the requested schema.

        Raises:
            QueryError: the database cannot be reached, refuses the statement or fails, or a value
                does not fit its column.
        """
        ...

    def close(self) -> None:
        """Stop the statement; any thread may call it, also while another one reads."""
        ...


class RemoteReader(Protocol):
    """Sends statements to one kind of database. Its methods block; any thread may call them."""

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> RemoteRows:
        """Return the rows of a statement that runs where the table is, from the first read on.

        Its columns become those of the schema, in order. Never blocks.
        """
        ...


class RemoteInsert(Protocol):
    """Rows that are inserted into a table, all or none. Its methods block."""

    def insert_rows(self, rows: Iterator[pa.RecordBatch]) -> int:
        """Insert the rows in one transaction, and return their number.

        The first row is asked for when the transaction has begun. An error of `rows` ends it.

        Raises:
            QueryError: the database refuses a row, cannot be reached or fails. The message says
                whether rows may be there.
        """
        ...

    def close(self) -> None:
        """Stop the statement if it runs; any thread may call it."""
        ...


class RemoteWriter(RemoteReader, Protocol):
    """A reader that also inserts rows. Its declaration says so, see `DatabaseReader`."""

    def insert(self, table: RemoteTable, columns: pa.Schema) -> RemoteInsert:
        """Return an INSERT of these columns of a table; others get their defaults. Never blocks."""
        ...


@runtime_checkable
class CommitLookup(Protocol):
    """A writer whose commits have the mark of `write_marks`. Its methods block."""

    def find_commit(self, table: RemoteTable, mark: str) -> int | None:
        """Return how many rows a commit says that it wrote; None: the table has no such commit.

        Raises:
            CarawayError: that cannot be found out.
        """
        ...


@dataclass(frozen=True, slots=True)
class Assignment:
    """A column that an UPDATE sets, to a value or to SQL over the row as it was before.

    `reads` are the columns that the SQL reads. A value has the type of the column.
    """

    column: str
    value: pa.Scalar | None = None
    sql: str = ""
    reads: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TableChange:
    """An UPDATE of the rows that meet a condition, or a DELETE of them if nothing is assigned.

    The condition is SQL over the columns of the table; an empty one is met by all rows.
    """

    condition: str
    assigned: tuple[Assignment, ...] = ()


class RemoteChange(Protocol):
    """An UPDATE or DELETE of all of its rows, or none. Its methods block."""

    def write_rows(self) -> int:
        """Change the rows in one transaction, and return how many met the condition.

        Raises:
            QueryError: the database refuses a row, cannot be reached or fails. The message says
                whether rows may be changed.
        """
        ...

    def close(self) -> None:
        """Stop the statement if it runs; any thread may call it."""
        ...


class RemoteChanger(RemoteWriter, Protocol):
    """A writer that also updates and deletes rows. Its declaration says so."""

    def change(self, table: RemoteTable, change: TableChange) -> RemoteChange:
        """Return an UPDATE or DELETE; it starts when it is run. Never blocks.

        Raises:
            InvalidQueryError: the database would set other values.
        """
        ...


@dataclass(frozen=True, slots=True)
class MergeStep:
    """One clause of a MERGE: in the rows that it takes, a column of each pair gets a value.

    The values of `sets` are columns of the rows. Those of `computed`, and the condition, are SQL
    over the row of the table, `TABLE_ALIAS`, and the one that is the same, `ROW_ALIAS`. `number` is
    the one of the clause. A step for rows of the table without pairs deletes them.
    """

    number: int
    sets: tuple[tuple[str, str], ...] = ()
    condition: str = ""
    computed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class MergeKey:
    """A column of the rows that is equal to one of the table.

    `same` is the template of what has to be equal of both, as texts are if their bytes are.
    """

    column: str
    row_column: str
    same: str = "{}"


@dataclass(frozen=True, slots=True)
class TableMerge:
    """A MERGE of rows into a table: which rows are the same, and what becomes of them.

    `columns` are the columns of the rows, each with the column of the table that it is compared
    with, or put into. Rows also have two numbers: the clause of a row that the table has (`TAKEN`),
    and the one of a row that it lacks (`ADDED`), NULL if there is none.

    If it `is_paired`, the clause of a row that the table has is not known without that row: the
    first one of `taken` whose condition holds. `match` is SQL that has to hold, too, for two rows
    to be the same, and `left` are the clauses of rows of the table that are the same as none.
    Columns of the rows that are not in `columns` are for this SQL.
    """

    keys: tuple[MergeKey, ...]
    columns: Mapping[str, str]
    taken: tuple[MergeStep, ...]
    added: tuple[MergeStep, ...]
    is_paired: bool = False
    match: str = ""
    left: tuple[MergeStep, ...] = ()


TAKEN, ADDED = "clause of rows that are there", "clause of rows that are not there"

TABLE_ALIAS, ROW_ALIAS = "t", "r"


class RemoteMerger(RemoteChanger, Protocol):
    """A changer that also merges rows. Its declaration says so."""

    def merge(self, table: RemoteTable, columns: pa.Schema, merge: TableMerge) -> RemoteInsert:
        """Return a MERGE of rows with these columns; it counts the rows of the table. Never blocks.

        A row of the table that would be taken twice is an error.
        """
        ...


class RemoteCreator(RemoteMerger, Protocol):
    """A merger that also creates and drops tables. Its declaration says so."""

    def create(self, definition: TableDefinition, columns: pa.Schema) -> RemoteInsert:
        """Return what creates a table with rows, all of it or nothing. Never blocks.

        Raises:
            InvalidQueryError: the database has no type for a column.
        """
        ...

    def drop(self, table: RemoteTable) -> RemoteChange:
        """Return what drops a table, unless others depend on it. Never blocks."""
        ...


FILE, POSITION, IS_ADDED = "file of the row", "position of the row", "row is added"
"""Columns of replaced rows, besides those of the table; no column of a table has such a name."""


class RemoteReplacer(RemoteWriter, Protocol):
    """A writer of tables whose files say where each row is. Its declaration says so.

    The engine finds the rows that an UPDATE, a DELETE or a MERGE changes, and computes new ones.
    """

    def placed(self, table: RemoteTable) -> TableSpec:
        """Return the rows as they are now, with the columns `FILE` and `POSITION`. Blocks.

        Raises:
            QueryError: the table cannot be read.
        """
        ...

    def replace(self, table: RemoteTable, placed: TableSpec) -> RemoteInsert:
        """Return what takes rows out of a table by their places, and adds others. Never blocks.

        Its rows have the columns `FILE` and `POSITION`, NULL for a row that is only added,
        `IS_ADDED`, and those of the table. A place that comes twice is an error.
        """
        ...
