"""Reads the kinds of tables that sources bring: a scanner gives their rows as Arrow batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from datafusion.catalog import Table

from caraway_core.errors import QueryError
from caraway_core.tables import TableSpec, TableSplit
from caraway_core.tables.scanners import RowRequest, TableScanner
from caraway_engine.errors import failing
from caraway_engine.remote import opened
from caraway_engine.remote.locally import LocalCondition
from caraway_engine.remote.opened import OpenedReads
from caraway_engine.remote.terms import column_filters


def read(spec: TableSpec, scanner: TableScanner, splits: Sequence[TableSplit] = ()) -> Table:
    """Make a table of all rows, or of some splits."""
    return Table(ScannedDataset(spec, scanner, splits))


class ScannedDataset(ds.InMemoryDataset):  # type: ignore[misc] # pyarrow is untyped to us
    """A dataset of pyarrow without rows of its own; a scanner gives them at each scan."""

    def __init__(
        self, spec: TableSpec, scanner: TableScanner, splits: Sequence[TableSplit]
    ) -> None:
        super().__init__(spec.schema.empty_table())
        self._fragment = _Fragment(spec, scanner, splits, OpenedReads())

    def scanner(self, columns: Sequence[str] | None = None, **_options: object) -> "_Scan":
        """Return what the engine asks for the columns of a scan, and for nothing else."""
        return self._fragment.scanner(columns=columns)

    def get_fragments(self, filter: Any = None) -> Iterator["_Fragment"]:
        """Return the one part; the filter comes again with the scan."""
        of = self._fragment
        return iter([_Fragment(of.spec, of.rows, of.splits, opened.current())])


@dataclass(frozen=True, slots=True)
class _Fragment:
    spec: TableSpec
    rows: TableScanner
    splits: Sequence[TableSplit]
    opened: OpenedReads

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        filter: Any = None,
        **_options: object,
    ) -> "_Scan":
        """Return the rows that pass the filter, with some of the columns."""
        names = tuple(self.spec.schema.names if columns is None else columns)
        return _Scan(self, names, LocalCondition.of(filter))


@dataclass(frozen=True, slots=True)
class _Scan:
    fragment: _Fragment
    columns: tuple[str, ...]
    condition: LocalCondition

    @property
    def projected_schema(self) -> pa.Schema:
        return pa.schema([self.fragment.spec.schema.field(name) for name in self.columns])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows. Errors leave it as marks, since the engine keeps only their text."""
        of, names = self.fragment, list(self.fragment.spec.schema.names)
        known = self.condition.columns
        wanted = {*self.columns, *(names if known is None else known)}
        # Rows without a column are still counted.
        columns = [name for name in names if name in wanted] or names[:1]
        filters, is_whole = column_filters(self.condition, of.spec.schema)
        limit = of.opened.limit if is_whole else None
        rows = of.rows.scan(of.spec, RowRequest(columns, of.splits, filters, limit))
        if not of.opened.add(rows):
            return
        try:
            for batch in rows:
                for part in self.condition.parts(batch):
                    yield part.select(list(self.columns))
        except QueryError as exc:
            raise failing.marked(exc) from exc
        finally:
            rows.close()
