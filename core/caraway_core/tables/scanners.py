"""Scanners of the kinds of tables that sources bring, found by the type of the table.

A module that defines a kind registers its scanner. To unpickle a table imports that module, so
executors and engine processes have the scanner, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from caraway_core.protocols.remote import RemoteRows
from caraway_core.tables import TableSpec, TableSplit

FilterOperator = Literal["=", "<>", "<", "<=", ">", ">=", "in", "is null", "is not null"]


@dataclass(frozen=True, slots=True)
class ColumnFilter:
    """A comparison of a column with a value of Python, which is never None.

    The value of `in` is a tuple. Texts compare by code points. No filter is of floating-point
    numbers. As in SQL, NULL passes `is null` only.
    """

    column: str
    operator: FilterOperator
    value: Any = None


@dataclass(frozen=True, slots=True)
class RowRequest:
    """The rows that a scan returns: all of a table, or those of some splits.

    The columns are never empty. The engine applies all filters and the limit itself, so a source
    uses what it answers exactly: it may leave out rows that do not pass each filter. `limit` counts
    the rows that pass all of `filters`: a source that does not apply them all must read on.
    """

    columns: Sequence[str]
    splits: Sequence[TableSplit] = ()
    filters: Sequence[ColumnFilter] = ()
    limit: int | None = None


class TableScanner(Protocol):
    """Reads one kind of table. Its methods may be called by any thread."""

    def scan(self, table: Any, request: RowRequest) -> RemoteRows:
        """Return the requested rows of a table. Never blocks.

        The rows may wait while they are read. The batches have the columns of the request in its
        order, with the types of the table's schema.
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
    scanner = _scanners.get(type(table))
    if scanner is None:
        raise LookupError(f"no scanner for tables of kind {type(table).__name__}")
    return scanner
