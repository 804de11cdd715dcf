"""A table whose rows are documents of a database that declares no fields."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from caraway_core.changes import Changes, Op, log_schema
from caraway_core.errors import DatasetError, QueryError
from caraway_core.tables import TableSpec, TableSplit, scanners
from caraway_core.tables.scanners import ColumnFilter, RowRequest
from caraway_plugins.sources.api import filtering, pointers, values
from caraway_plugins.sources.documents import json_texts

Documents = Sequence[Mapping[str, Any]]
ColumnValues: TypeAlias = Sequence[Any] | pa.Array
Columns = Mapping[str, ColumnValues]
"""The values of documents by the names of columns. All columns have as many."""


class DocumentReads(Protocol):
    """Reads documents of one place: a frozen value."""

    @property
    def title(self) -> str:
        """The place in messages."""
        ...

    def pages(
        self, table: "DocumentTable", request: RowRequest, stopped: threading.Event
    ) -> Iterable[Documents | Columns]:
        """Yield the documents of a request, in parts, or the values of its columns.

        It may yield others, too: the table applies all filters. A field that no column reads may
        be missing.

        Raises:
            DatasetError: the documents cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class DocumentTable(TableSpec):
    """Documents as rows. The columns in `texts` take values of every type.

    With an `unnest_depth`, fields of nested objects are columns, named by the field alone.
    """

    schema: pa.Schema
    reads: DocumentReads
    texts: frozenset[str] = frozenset()
    unnest_depth: int = 0
    size_bytes: int = 0
    row_count: int | None = None
    splits: tuple[TableSplit, ...] = ()

    @property
    def why_unchangeable(self) -> str:
        return "its rows are documents of a database; change them there"

    def fields(self, request: RowRequest) -> Sequence[str] | None:
        """Return the fields of documents that a request reads; None: any may be."""
        if self.unnest_depth:
            return None
        return list(dict.fromkeys([*request.columns, *(each.column for each in request.filters)]))

    def own_filters(self, request: RowRequest) -> Sequence[ColumnFilter]:
        """Return the filters of columns that are fields of documents, and not of nested objects."""
        return () if self.unnest_depth else request.filters

    def batch(self, documents: Documents | Columns, names: Iterable[str]) -> pa.RecordBatch:
        """Return documents as rows with some columns.

        Raises:
            DatasetError: a value does not fit its column.
        """
        title = self.reads.title
        schema = pa.schema([self.schema.field(name) for name in names])
        if isinstance(documents, Mapping):
            return values.batch_of(documents, schema, frozenset(), title)
        if self.unnest_depth:
            documents = [pointers.unnested(each, self.unnest_depth, title) for each in documents]
        if texts := self.texts.intersection(schema.names):
            documents = [
                {**each, **{name: json_texts.text_of(each.get(name)) for name in texts}}
                for each in documents
            ]
        return values.batch(documents, schema, frozenset(), title)

    def changes(self, documents: Documents, ops: Sequence[Op], received: int) -> Changes:
        """Return documents as changes of rows.

        Raises:
            DatasetError: a value does not fit its column.
        """
        rows = self.batch(documents, self.schema.names)
        columns = [*rows.columns, pa.array(map(int, ops), pa.int8())]
        columns.append(pa.nulls(len(ops), pa.binary()))
        return Changes(pa.Table.from_arrays(columns, schema=log_schema(self.schema)), received)


class _Rows:
    """Reads the first page when the first row is needed, in the thread that needs it."""

    def __init__(self, table: DocumentTable, request: RowRequest) -> None:
        self._table, self._request = table, request
        self._stopped = threading.Event()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._batches()
        except DatasetError as exc:
            raise QueryError(exc.message) from exc

    def close(self) -> None:
        self._stopped.set()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        table, request = self._table, self._request
        names = dict.fromkeys([*request.columns, *(each.column for each in request.filters)])
        rows_left = request.limit
        for documents in table.reads.pages(table, request, self._stopped):
            batch = filtering.passing(table.batch(documents, names), request.filters)
            if self._stopped.is_set():
                return
            yield batch.select(list(request.columns)).slice(0, rows_left)
            if rows_left is not None and (rows_left := rows_left - batch.num_rows) <= 0:
                return


class _Scanner:
    def scan(self, table: DocumentTable, request: RowRequest) -> _Rows:
        return _Rows(table, request)


# To unpickle a table imports this module, so every process that gets one has the scanner.
scanners.register(DocumentTable, _Scanner())
