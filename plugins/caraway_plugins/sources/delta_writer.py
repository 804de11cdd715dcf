"""Adds rows to Delta Lake tables, by one commit for each INSERT."""

import uuid
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from caraway_core.errors import ExecutionError, InvalidQueryError, QueryError
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.delta import WRITTEN_PLACE

_MARK = "caraway.insert"
_NEWEST = 20
_SHORTEST = 4
_BROKEN = "failed validation check"
_CONSTRAINT = "delta.constraints."
_NOTHING = "no row was inserted"


class DeltaWriter:
    """Adds rows to tables."""

    def insert(self, table: RemoteTable, columns: pa.Schema) -> "DeltaInsert":
        """Return an INSERT of rows."""
        return DeltaInsert(table, columns)


class DeltaInsert:
    """An INSERT into one table; see `RemoteInsert`."""

    def __init__(self, table: RemoteTable, columns: pa.Schema) -> None:
        """Take the columns of the rows; others get NULL."""
        self._title = f"INSERT into {table.title}"
        self._login = table.login
        self._columns = columns
        self._mark = uuid.uuid4().hex
        self._is_closed = False

    def close(self) -> None:
        """Have the next rows end the INSERT, if it runs."""
        self._is_closed = True

    def insert_rows(self, rows: Iterator[pa.RecordBatch]) -> int:
        """Write the rows as files, and commit them."""
        try:
            table = _opened(self._login)
            schema = pa.schema(table.schema().to_arrow())
        except (DeltaError, OSError, ValueError) as exc:
            raise ExecutionError(
                f"{self._title} failed: {_reason(exc, self._login)}; {_NOTHING}"
            ) from exc
        given = _Rows(rows, schema, self._columns, self._title, lambda: self._is_closed)
        first = next(given, None)
        if first is None:
            return 0
        data = pa.RecordBatchReader.from_batches(schema, given.from_first(first))
        commit = CommitProperties(custom_metadata={_MARK: self._mark})
        try:
            write_deltalake(table, data, mode="append", commit_properties=commit)
        except (DeltaError, OSError, ValueError) as exc:
            if given.failure is not None:
                raise given.failure from exc
            if _BROKEN in str(exc):
                kept = "; ".join(_constraints(table))
                raise InvalidQueryError(
                    f"{self._title} failed: rows break a constraint of the table ({kept}); "
                    f"{_NOTHING}"
                ) from exc
            self._check_committed(exc)
        return given.count

    def _check_committed(self, exc: Exception) -> None:
        """Raise the error of a write, unless its commit is in the log of the table."""
        reason = _reason(exc, self._login)
        try:
            history = _opened(self._login).history(_NEWEST)
        except (DeltaError, OSError, ValueError):
            raise ExecutionError(
                f"{self._title}: {reason}, while the rows were committed; look whether they are "
                "inserted before you run it again"
            ) from exc
        if not any(each.get(_MARK) == self._mark for each in history):
            raise ExecutionError(f"{self._title} failed: {reason}; {_NOTHING}") from exc


class _Rows:
    """Rows with all columns of a table; counts them, and keeps the error that ends them."""

    def __init__(
        self,
        rows: Iterator[pa.RecordBatch],
        schema: pa.Schema,
        columns: pa.Schema,
        title: str,
        is_closed: Callable[[], bool],
    ) -> None:
        self.count = 0
        self.failure: BaseException | None = None
        self._rows = rows
        self._schema = schema
        self._columns = columns
        self._title = title
        self._is_closed = is_closed
        if unknown := set(columns.names) - set(schema.names):
            raise self._refused(f"the table no longer has the column '{min(unknown)}'")

    def __next__(self) -> pa.RecordBatch:
        while True:
            batch = next(self._rows)
            if self._is_closed():
                raise ExecutionError(f"the statement was stopped; {_NOTHING}")
            if batch.num_rows:
                self.count += batch.num_rows
                return self._whole(batch)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def from_first(self, first: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows from the first ones on; the library words errors of them anew."""
        try:
            yield first
            yield from self
        except BaseException as exc:
            self.failure = exc
            raise

    def _whole(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = []
        for field in self._schema:
            if field.name in self._columns.names:
                array = self._fitting(batch.column(field.name), field)
            else:
                array = pa.nulls(batch.num_rows, field.type)
            if array.null_count and not field.nullable:
                raise self._refused(f"column '{field.name}' takes no NULL")
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _fitting(self, array: pa.Array, field: pa.Field) -> pa.Array:
        if array.type == field.type:
            return array
        try:
            return pc.cast(array, field.type)
        except pa.ArrowException as exc:
            raise self._refused(f"a value for column '{field.name}' is not a {field.type}") from exc

    def _refused(self, what: str) -> QueryError:
        return InvalidQueryError(f"{self._title} failed: {what}; {_NOTHING}")


def _opened(login: Mapping[str, str]) -> DeltaTable:
    options = {name: value for name, value in login.items() if name != WRITTEN_PLACE}
    return DeltaTable(login[WRITTEN_PLACE], storage_options=options or None)


def _constraints(table: DeltaTable) -> list[str]:
    settings = table.metadata().configuration
    return sorted(value for key, value in settings.items() if key.startswith(_CONSTRAINT))


def _reason(exc: Exception, login: Mapping[str, str]) -> str:
    """Return why a table cannot be written, without places and secrets."""
    if isinstance(exc, TableNotFoundError):
        return "the table is not there"
    said = str(exc).splitlines()[0] if str(exc) else "the table cannot be written"
    said = said.rpartition(" error: ")[2]
    for value in sorted(login.values(), key=len, reverse=True):
        said = said.replace(value, "...") if len(value) >= _SHORTEST else said
    return said
