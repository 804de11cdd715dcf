"""Tables over files that are decoded: which files, which of them a task reads, and their rows."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import DatasetError, QueryError
from caraway_core.tables import StoreSpec, TableSpec, TableSplit, scanners
from caraway_core.tables.scanners import ColumnFilter, RowRequest
from caraway_plugins.sources.buckets import BucketStorage
from caraway_plugins.sources.decoded import declared, decoders, documents
from caraway_plugins.sources.disk import Disk
from caraway_plugins.sources.partitions import Values
from caraway_plugins.sources.storage import FoundFile, Storage

_BATCH_ROWS = 1_024
_BATCH_BYTES = 8 * 2**20
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda value, among: value in among,
}
_MOST_SPLITS = 64


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """A file, and the values of its `key=value` folders."""

    found: FoundFile
    partition: Values = ()


@dataclass(frozen=True, slots=True)
class FilesSplit(TableSplit):
    """Some files of a table."""

    files: tuple[PlacedFile, ...]

    @property
    def name(self) -> str:
        return f"{self.files[0].found.path} {len(self.files)}"

    @property
    def size_bytes(self) -> int:
        return sum(each.found.size_bytes for each in self.files)


@dataclass(frozen=True, slots=True)
class DecodedTable(TableSpec):
    """The rows of files of one format. `keys` are the columns of `key=value` folders."""

    schema: pa.Schema
    format: str
    files: tuple[PlacedFile, ...]
    keys: frozenset[str] = frozenset()
    is_normalized: bool = False
    store: StoreSpec | None = field(default=None, repr=False)
    timeout_s: float = 30.0

    @property
    def size_bytes(self) -> int:
        return sum(each.found.size_bytes for each in self.files)

    @property
    def row_count(self) -> int | None:
        # Each document is one row.
        return len(self.files) if self.format in declared.DOCUMENTS else None

    @property
    def splits(self) -> Sequence[FilesSplit]:
        """The files in as many parts as some executors can share."""
        if len(self.files) < 2:
            return ()
        step = -(-len(self.files) // _MOST_SPLITS)
        starts = range(0, len(self.files), step)
        return [FilesSplit(self.files[start : start + step]) for start in starts]


class _Rows:
    """Opens a file when its first row is needed, in the thread that needs it."""

    def __init__(self, table: DecodedTable, request: RowRequest) -> None:
        self._table, self._request = table, request
        self._is_closed = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from _gathered(self._batches())
        except DatasetError as exc:
            raise QueryError(str(exc)) from exc

    def close(self) -> None:
        self._is_closed = True

    def _batches(self) -> Iterator[pa.RecordBatch]:
        table, request = self._table, self._request
        storage: Storage = (
            Disk() if table.store is None else BucketStorage(table.store, table.timeout_s)
        )
        files = table.files
        if request.splits:
            parts = [each for each in request.splits if isinstance(each, FilesSplit)]
            files = tuple(file for part in parts for file in part.files)
        schema = pa.schema([table.schema.field(name) for name in request.columns])
        decoder = decoders.of(table.format, is_normalized=table.is_normalized)
        left = request.limit
        for file in files:
            known = _known(storage, table, file)
            if not all(_passes(each, known) for each in request.filters if each.column in known):
                continue
            # A filter of other columns is applied by the engine, and rows beyond the limit pass it.
            is_counted = all(each.column in known for each in request.filters)
            own = [name for name in request.columns if name not in table.keys]
            for batch in decoder.batches(storage, file.found, own):
                if self._is_closed:
                    return
                yield _completed(storage.title(file.found.path), batch, schema, known)
                if left is not None and is_counted and (left := left - batch.num_rows) <= 0:
                    return


def _known(storage: Storage, table: DecodedTable, file: PlacedFile) -> Mapping[str, object]:
    """Return the values that all rows of a file have."""
    values = dict.fromkeys(table.keys) | dict(file.partition)
    title = storage.title(file.found.path)
    known = {
        name: _cast(title, table.schema.field(name), pa.array([text], pa.string()))[0].as_py()
        for name, text in values.items()
    }
    if table.format in declared.DOCUMENTS:
        known |= documents.known(storage, file.found)
    return known


def _passes(filter_: ColumnFilter, known: Mapping[str, object]) -> bool:
    value = known[filter_.column]
    match filter_.operator:
        case "is null":
            return value is None
        case "is not null":
            return value is not None
    return value is not None and _COMPARISONS[filter_.operator](value, filter_.value)


def _completed(
    title: str, batch: pa.RecordBatch, schema: pa.Schema, known: Mapping[str, object]
) -> pa.RecordBatch:
    """Give a batch the columns of the request, with their types; those that it lacks are NULL."""
    names, columns = batch.schema.names, []
    for each in schema:
        if each.name in names:
            column = _cast(title, each, batch.column(each.name))
        else:
            column = pa.repeat(pa.scalar(known.get(each.name), each.type), batch.num_rows)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(title: str, wanted: pa.Field, column: pa.Array) -> pa.Array:
    if column.type == wanted.type:
        return column
    try:
        return pc.cast(column, wanted.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as exc:
        raise QueryError(
            f"'{title}' has a value in column '{wanted.name}' that does not fit {wanted.type}; "
            "declare another type under `columns`"
        ) from exc


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make one batch of several small ones."""
    waiting: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for batch in batches:
        waiting.append(batch)
        rows, size_bytes = rows + batch.num_rows, size_bytes + batch.nbytes
        if rows >= _BATCH_ROWS or size_bytes >= _BATCH_BYTES:
            yield _joined(waiting)
            waiting, rows, size_bytes = [], 0, 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


class _Scanner:
    def scan(self, table: DecodedTable, request: RowRequest) -> _Rows:
        return _Rows(table, request)


scanners.register(DecodedTable, _Scanner())
