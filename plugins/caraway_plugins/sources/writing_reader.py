"""The base of readers whose databases are written, too."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from caraway_core.protocols.remote import RemoteChange, RemoteInsert, TableChange, TableMerge
from caraway_core.statements.definitions import TableDefinition
from caraway_core.tables import RemoteTable


@dataclass(frozen=True, slots=True)
class DatabaseWriters:
    """What makes the statements that write to one kind of database."""

    insert: Callable[[RemoteTable, pa.Schema], RemoteInsert]
    change: Callable[[RemoteTable, TableChange], RemoteChange]
    merge: Callable[[RemoteTable, pa.Schema, TableMerge], RemoteInsert]
    create: Callable[[TableDefinition, pa.Schema], RemoteInsert]
    drop: Callable[[RemoteTable], RemoteChange]


class WritingReader(ABC):
    """Makes statements that write; each starts when it is run."""

    @abstractmethod
    def _writers(self) -> DatabaseWriters:
        """Import and return the writers: not at start, because most processes only read."""

    def insert(self, table: RemoteTable, columns: pa.Schema) -> RemoteInsert:
        """Return an INSERT of rows."""
        return self._writers().insert(table, columns)

    def change(self, table: RemoteTable, change: TableChange) -> RemoteChange:
        """Return an UPDATE or DELETE."""
        return self._writers().change(table, change)

    def merge(self, table: RemoteTable, columns: pa.Schema, merge: TableMerge) -> RemoteInsert:
        """Return a MERGE of rows."""
        return self._writers().merge(table, columns, merge)

    def create(self, definition: TableDefinition, columns: pa.Schema) -> RemoteInsert:
        """Return what creates a table with rows."""
        return self._writers().create(definition, columns)

    def drop(self, table: RemoteTable) -> RemoteChange:
        """Return what drops a table."""
        return self._writers().drop(table)
