"""Builds DataFusion tables from table specs: each is made in a scratch context and taken out."""

from collections.abc import Callable, Sequence
from typing import Any

from datafusion.catalog import Table

from caraway_core.tables import (
    FilesTable,
    MemoryTable,
    RemoteSplit,
    RemoteTable,
    TableSpec,
    TableSplit,
    scanners,
)
from caraway_engine.scans.readers import files, memory


def _read_remote(spec: RemoteTable, splits: Sequence[TableSplit] = ()) -> Table:
    """Make a table of all rows, or of some splits."""
    from caraway_engine.remote import datasets  # Here: pyarrow's datasets are slow to import.

    return datasets.build(spec, [each for each in splits if isinstance(each, RemoteSplit)])


TableReader = Callable[[Any, Sequence[TableSplit]], Table]
"""Makes a table of all rows of a spec, or of those of some splits."""

# Versions of accelerated datasets and views are not tables by themselves: see `sessions`.
_READERS: dict[type[TableSpec], TableReader] = {
    FilesTable: files.read,
    MemoryTable: memory.read,
    RemoteTable: _read_remote,
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
