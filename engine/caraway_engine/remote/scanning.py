"""Datasets of pyarrow that hold no rows: each scan reads them from the source."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from caraway_core.errors import QueryError
from caraway_core.protocols.remote import RemoteRows
from caraway_core.work import SourceQuery
from caraway_engine.errors import failing
from caraway_engine.remote import opened
from caraway_engine.remote.locally import LocalCondition
from caraway_engine.remote.opened import OpenedReads
from caraway_engine.rows.null_structs import with_null_fields


class PlannedRows(Protocol):
    """Reads the rows of one scan."""

    @property
    def left(self) -> LocalCondition:
        """The conditions that are applied here."""
        ...

    @property
    def query(self) -> SourceQuery | None:
        """The statement that a database gets for the rows, if one does."""
        ...

    def begin_rows(self, reads: OpenedReads) -> RemoteRows:
        """Return the rows; reading them starts with the first one."""
        ...


class OutsideTable(Protocol):
    """A table whose rows are somewhere else."""

    @property
    def schema(self) -> pa.Schema: ...

    def plan(self, columns: Sequence[str], condition: LocalCondition) -> PlannedRows:
        """Decide how to read the columns of the rows that meet a condition."""
        ...


class RowDataset(ds.InMemoryDataset):  # type: ignore[misc] # pyarrow is untyped to us
    """A dataset that has one fragment, whose scans read a source."""

    def __init__(self, source: OutsideTable) -> None:
        super().__init__(source.schema.empty_table())
        self._source = source

    def scanner(
        self, columns: Sequence[str] | None = None, filter: object = None, **_options: object
    ) -> "RowScan":
        """Return a scan that the engine does not run: it takes the columns of a planned one."""
        scan = _Fragment(self._source, OpenedReads()).scanner(columns=columns, filter=filter)
        if (query := scan.rows.query) is not None:
            opened.current().plan(query)
        return scan

    def get_fragments(self, filter: object = None) -> Iterator["_Fragment"]:
        """Return the only fragment. The engine passes the filter again with the scan."""
        return iter([_Fragment(self._source, opened.current())])


@dataclass(frozen=True, slots=True)
class _Fragment:
    source: OutsideTable
    reads: OpenedReads

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        filter: object = None,
        **_options: object,
    ) -> "RowScan":
        """Return a scan of the rows that pass the filter, with the requested columns."""
        names = tuple(self.source.schema.names if columns is None else columns)
        rows = self.source.plan(names, LocalCondition.from_filter(filter))
        return RowScan(self.source.schema, names, rows, self.reads)


@dataclass(frozen=True, slots=True)
class RowScan:
    """One scan of rows that are read elsewhere."""

    schema: pa.Schema
    columns: tuple[str, ...]
    rows: PlannedRows
    reads: OpenedReads

    @property
    def projected_schema(self) -> pa.Schema:
        """The schema of the requested columns."""
        return pa.schema([self.schema.field(name) for name in self.columns])

    def to_batches(self) -> Generator[pa.RecordBatch]:
        """Yield the rows. Errors are raised as marks, because the engine keeps only their text."""
        rows = self.rows.begin_rows(self.reads)
        if not self.reads.add(rows):
            return
        try:
            for batch in rows:
                for part in self.rows.left.parts(with_null_fields(batch)):
                    yield part.select(list(self.columns))
        except QueryError as exc:
            raise failing.marked(exc) from exc
        finally:
            rows.close()
