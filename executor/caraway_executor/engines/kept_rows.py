"""Keeps the rows of tables in memory, so that they outlive the engine process that wrote them."""

from collections.abc import Mapping

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.tables import MemoryTable, TableSpec


class KeptRows:
    """The rows of tables in memory after the last write."""

    def __init__(self) -> None:
        self.writes = 0
        self._kept: dict[TableName, tuple[TableSpec, MemoryTable]] = {}

    def keep(self, table: TableName, origin: TableSpec, rows: pa.Table) -> None:
        """Replace all rows of a table, whose initial spec is `origin`."""
        self._kept[table] = origin, MemoryTable(origin.schema, rows.cast(origin.schema))
        self.writes += 1

    def current_table(self, table: TableName, origin: TableSpec) -> TableSpec:
        """Return the table whose initial spec is `origin`, with its current rows."""
        began, now = self._kept.get(table, (None, None))
        return now if now is not None and began is origin else origin


class ProcessRows:
    """The kept rows, as one engine process knows them."""

    def __init__(self, kept: KeptRows) -> None:
        self._kept = kept
        self._given: dict[TableName, tuple[TableSpec, TableSpec]] = {}
        """For each table, its initial spec and the spec that the process was given."""
        self._writes = kept.writes
        """The number of writes that the process knows."""

    @property
    def is_newest(self) -> bool:
        """True if the process knows every write."""
        return self._writes == self._kept.writes

    def give(self, tables: Mapping[TableName, TableSpec]) -> Mapping[TableName, TableSpec]:
        """Return the tables in memory among `tables`, as the process should have them."""
        origins = {name: spec for name, spec in tables.items() if spec.first_rows is not None}
        for name, origin in origins.items():
            began, _ = self._given.get(name, (None, None))
            # The process already has its own writes, which changed the rows it was given.
            if began is not origin or not self.is_newest:
                self._given[name] = origin, self._kept.current_table(name, origin)
        self._writes = self._kept.writes
        return {name: self._given[name][1] for name in origins}

    def keep(self, table: TableName, rows: pa.Table) -> None:
        """Record the rows of a table that the process has written."""
        if table not in self._given:
            return
        was_newest = self.is_newest
        self._kept.keep(table, self._given[table][0], rows)
        if was_newest:
            self._writes = self._kept.writes
