"""Reads the kinds of tables that sources bring: a scanner gives their rows as Arrow batches."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from datafusion.catalog import Table

from caraway_core.protocols.remote import RemoteRows
from caraway_core.tables import TableSpec, TableSplit
from caraway_core.tables.scanners import RowRequest, TableScanner
from caraway_engine.remote.locally import LocalCondition
from caraway_engine.remote.opened import OpenedReads
from caraway_engine.remote.scanning import RowDataset
from caraway_engine.remote.terms import column_filters


def read(spec: TableSpec, scanner: TableScanner, splits: Sequence[TableSplit] = ()) -> Table:
    """Make a table of all rows, or of some splits."""
    return Table(RowDataset(_Source(spec, scanner, splits)))


@dataclass(frozen=True, slots=True)
class _Source:
    spec: TableSpec
    scanner: TableScanner
    splits: Sequence[TableSplit]

    @property
    def schema(self) -> pa.Schema:
        return self.spec.schema

    def plan(self, columns: Sequence[str], condition: LocalCondition) -> "_Request":
        """Request the columns, and those that the condition reads."""
        names = list(self.spec.schema.names)
        wanted = {*columns, *(names if condition.columns is None else condition.columns)}
        # Rows without a column are still counted.
        return _Request(self, [name for name in names if name in wanted] or names[:1], condition)


@dataclass(frozen=True, slots=True)
class _Request:
    source: _Source
    columns: Sequence[str]
    left: LocalCondition
    query: None = None

    def begin_rows(self, reads: OpenedReads) -> RemoteRows:
        source = self.source
        filters, is_whole = column_filters(self.left, source.spec.schema)
        limit = reads.limit if is_whole else None
        request = RowRequest(self.columns, source.splits, filters, limit)
        return source.scanner.scan(source.spec, request)
