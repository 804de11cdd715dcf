"""Builds DataFusion tables from table specs: each is made in a scratch context and taken out."""

from collections.abc import Callable, Sequence
from typing import Any

from datafusion.catalog import Table

from caraway_core.tables import (
    FilesTable,
    MemoryTable,
    RemoteTable,
    TableSpec,
    TableSplit,
    scanners,
)
from caraway_engine.scans.readers import files, memory, remote

TableReader = Callable[[Any, Sequence[TableSplit]], Table]
"""Makes a table of all rows of a spec, or of those of some splits."""

# Versions of accelerated datasets and views are not tables by themselves: see `sessions`.
_READERS: dict[type[TableSpec], TableReader] = {
    FilesTable: files.read,
    MemoryTable: memory.read,
    RemoteTable: remote.read,
}


def build_table(spec: TableSpec, splits: Sequence[TableSplit] = ()) -> Table:
    """Make a table of a spec; contexts that run queries over it need its object stores, too.

    Raises:
        LookupError: nothing reads this kind of table.
    """
    reader = _READERS.get(type(spec))
    if reader is not None:
        return reader(spec, splits)
    from caraway_engine.scans.readers import scanned  # Here: pyarrow's datasets are slow to import.

    return scanned.read(spec, scanners.of(spec), splits)
