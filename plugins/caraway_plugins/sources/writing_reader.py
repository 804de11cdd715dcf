"""The base of readers whose databases are written, too."""

import importlib
from typing import Any, ClassVar

import pyarrow as pa

from caraway_core.protocols.remote import RemoteChange, RemoteInsert, TableChange, TableMerge
from caraway_core.statements.definitions import TableDefinition
from caraway_core.tables import RemoteTable


class WritingReader:
    """Makes statements that write; each starts when it is run.

    Their modules `writer`, `merger` and `creator` are imported for the first of them, because most
    processes only read.
    """

    writers: ClassVar[str]
    """The package of the modules, and how the names of their classes begin: `package:Name`."""

    def insert(self, table: RemoteTable, columns: pa.Schema) -> RemoteInsert:
        """Return an INSERT of rows."""
        insert: RemoteInsert = self._load("writer", "Insert")(table, columns)
        return insert

    def change(self, table: RemoteTable, change: TableChange) -> RemoteChange:
        """Return an UPDATE or DELETE."""
        changed: RemoteChange = self._load("writer", "Change")(table, change)
        return changed

    def merge(self, table: RemoteTable, columns: pa.Schema, merge: TableMerge) -> RemoteInsert:
        """Return a MERGE of rows."""
        merged: RemoteInsert = self._load("merger", "Merge")(table, columns, merge)
        return merged

    def create(self, definition: TableDefinition, columns: pa.Schema) -> RemoteInsert:
        """Return what creates a table with rows."""
        creation: RemoteInsert = self._load("creator", "Creation")(definition, columns)
        return creation

    def drop(self, table: RemoteTable) -> RemoteChange:
        """Return what drops a table."""
        drop: RemoteChange = self._load("creator", "Drop")(table)
        return drop

    def _load(self, module: str, name: str) -> Any:
        package, _, start = self.writers.partition(":")
        return getattr(importlib.import_module(f"{package}.{module}"), f"{start}{name}")
