"""Reads tables of databases: their scans become statements, see `caraway_engine.remote`."""

from collections.abc import Sequence

from datafusion.catalog import Table

from caraway_core.tables import RemoteSplit, RemoteTable, TableSplit


def read(spec: RemoteTable, splits: Sequence[TableSplit] = ()) -> Table:
    """Make a table of all rows, or of some splits."""
    from caraway_engine.remote import datasets  # Here: pyarrow's datasets are slow to import.

    return datasets.build(spec, [each for each in splits if isinstance(each, RemoteSplit)])
