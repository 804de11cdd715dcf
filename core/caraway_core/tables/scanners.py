"""Scanners of the kinds of tables that sources bring, found by the type of the table.

A module that defines a kind registers its scanner. To unpickle a table imports that module, so
executors and engine processes have the scanner, too.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from caraway_core.protocols.remote import RemoteRows
from caraway_core.tables import TableSpec, TableSplit


class TableScanner(Protocol):
    """Reads one kind of table. Its methods may be called by any thread."""

    def scan(self, table: Any, splits: Sequence[TableSplit], columns: Sequence[str]) -> RemoteRows:
        """Return some columns of a table, of all rows or of those of some splits. Never blocks.

        The rows may wait while they are read. The columns are never empty, and the batches have
        them in this order, with the types of the table's schema.
        """
        ...


_scanners: dict[type[TableSpec], TableScanner] = {}


def register(kind: type[TableSpec], scanner: TableScanner) -> None:
    """Have a scanner read tables of a kind from now on."""
    _scanners[kind] = scanner


def of(table: TableSpec) -> TableScanner:
    """Return the scanner of a table.

    Raises:
        LookupError: its kind has none.
    """
    found = _scanners.get(type(table))
    if found is None:
        raise LookupError(f"no scanner for tables of kind {type(table).__name__}")
    return found
