"""The base of writes to Delta tables: a table, one commit with a mark, and errors."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from caraway_core.errors import ExecutionError, InvalidQueryError, QueryError
from caraway_core.process import write_marks
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import delta, driver_messages
from caraway_plugins.sources.delta import WRITTEN_PLACE

FAILURES: tuple[type[Exception], ...] = (Exception,)
"""The errors of the library, of which some are plain exceptions."""
_MARK = "caraway.write"
_NEWEST = 20
_PUBLIC = ("allow_http", "region", "skip_signature", "timeout", "use_emulator")
"""The ends of the names of options that messages may have; others are secrets and places."""
_OF_VALUES = ("Cast error", "cannot cast", "too large", "verflow")
_BROKEN = "failed validation check"
_TWICE = "with multiple source rows"
_APPEND_ONLY = "delta.appendOnly"
_CONSTRAINT = "delta.constraints."
_GENERATED = "delta.generationExpression"
_LONGEST = 200


_COUNTED = (
    "num_added_rows", "num_updated_rows", "num_deleted_rows", "num_target_rows_inserted",
    "num_target_rows_updated", "num_target_rows_deleted",
)  # fmt: skip
"""The metrics that count the rows of a statement, in the entries of a log."""


def find_commit(table: RemoteTable, mark: str) -> int | None:
    """See `CommitLookup`.

    Raises:
        ExecutionError: the log cannot be read, or has no number of rows.
    """
    try:
        history = opened(table.login).history(_NEWEST)
    except FAILURES as exc:
        raise ExecutionError(_reason(exc, table.login)) from exc
    for each in history:
        if each.get(_MARK) == mark:
            metrics = each.get("operationMetrics") or {}
            counts = [int(metrics[name]) for name in _COUNTED if name in metrics]
            if not counts:
                raise ExecutionError("the log does not say how many rows the commit has")
            return sum(counts)
    return None


class DeltaWrite:
    """A statement that writes to one table by one commit, or changes nothing."""

    verb = "INSERT into"
    done = "inserted"
    most_retries: int | None = None
    """The number of further tries when others commit meanwhile; None: as many as usual."""

    def __init__(self, table: RemoteTable) -> None:
        """Take the table that is written."""
        self._table = table
        self._is_closed = False

    def close(self) -> None:
        """Have the statement end before it commits, unless its files are being written."""
        self._is_closed = True

    @property
    def _title(self) -> str:
        return f"{self.verb} {self._table.title}"

    @property
    def _nothing(self) -> str:
        return f"no row was {self.done}"

    def _refused(self, what: str) -> QueryError:
        return InvalidQueryError(f"{self._title} failed: {what}; {self._nothing}")

    def _refused_empty(self, column: str) -> QueryError:
        return self._refused(
            f"the table is divided by column '{column}', where an empty text would be NULL"
        )

    def _check_running(self) -> None:
        if self._is_closed:
            raise ExecutionError(f"the statement was stopped; {self._nothing}")

    def _opened(self) -> DeltaTable:
        """Return the newest version of the table.

        Raises:
            QueryError: it cannot be read, or it cannot be written as it is.
        """
        self._check_running()
        try:
            table = opened(self._table.login)
            delta.check(table)
        except FAILURES as exc:
            reason = _reason(exc, self._table.login)
            raise ExecutionError(f"{self._title} failed: {reason}; {self._nothing}") from exc
        for name in table.metadata().partition_columns:
            if not _is_kept(type_ := schema_of(table).field(name).type):
                raise self._refused(
                    f"the table is divided by column '{name}', and a {type_} is not kept exactly "
                    "in the names of its parts"
                )
        return table

    def _check_same(self, table: DeltaTable) -> None:
        """Check that the table has the columns that the statement was planned with."""
        schema = schema_of(table)
        for each in self._table.schema:
            if each.name not in schema.names or schema.field(each.name).type != each.type:
                raise ExecutionError(
                    f"{self._title} failed: the table no longer has the column '{each.name}' as a "
                    f"{each.type}; {self._nothing}; run it again after the dataset is refreshed"
                )

    def _check_changeable(self, table: DeltaTable) -> None:
        settings = table.metadata().configuration
        if str(settings.get(_APPEND_ONLY)).lower() == "true":
            raise self._refused(f"rows are only added to the table, by its '{_APPEND_ONLY}'")

    def _committed(
        self,
        table: DeltaTable,
        work: Callable[[CommitProperties], Mapping[str, object]],
        given: "RowsForLibrary | None" = None,
    ) -> Mapping[str, Any]:
        """Do work that ends with a commit, and return its counts. An error of its rows ends it.

        Raises:
            QueryError: it failed. The message says whether rows may be written.
        """
        before, mark = table.version(), write_marks.current()
        properties = CommitProperties(
            custom_metadata={_MARK: mark}, max_commit_retries=self.most_retries
        )
        try:
            return work(properties)
        except FAILURES as exc:
            if given is not None and given.failure is not None:
                raise given.failure from exc
            if _TWICE in str(exc):
                raise self._refused(
                    "a row would be changed by more than one row of the source"
                ) from exc
            if _BROKEN in str(exc):
                raise self._refused(
                    f"rows break a constraint of the table ({_constraints(table)})"
                ) from exc
            if driver_messages.is_of_nan(str(exc)):
                raise self._refused(driver_messages.NAN_COMPARED) from exc
            return self._found(exc, before, mark)

    def _found(self, exc: Exception, before: int, mark: str) -> Mapping[str, object]:
        """Return what a write counted whose commit is in the log, or raise its error."""
        reason = _reason(exc, self._table.login)
        try:
            newest = opened(self._table.login)
            history = newest.history(_NEWEST)
        except FAILURES:
            raise ExecutionError(
                f"{self._title}: {reason}, while the rows were committed; look whether they are "
                f"{self.done} before you run it again"
            ) from exc
        for each in history:
            if each.get(_MARK) == mark:
                return each.get("operationMetrics") or {}
        if isinstance(exc, CommitFailedError) and newest.version() > before:
            raise ExecutionError(
                f"{self._title} failed: others wrote to the table at the same time; "
                f"{self._nothing}; run it again"
            ) from exc
        if any(each in str(exc) for each in _OF_VALUES):
            raise self._refused(reason) from exc
        raise ExecutionError(f"{self._title} failed: {reason}; {self._nothing}") from exc


class RowsForLibrary:
    """Rows for the library, each batch made by `made`.

    The library has a message of its own for an error of rows, so the error is kept.
    """

    def __init__(
        self, rows: Iterator[pa.RecordBatch], made: Callable[[pa.RecordBatch], pa.RecordBatch]
    ) -> None:
        self.count = 0
        self.failure: BaseException | None = None
        self._rows = rows
        self._made = made

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._rows:
                made = self._made(batch)
                self.count += batch.num_rows
                if batch.num_rows:
                    yield made
        except BaseException as exc:
            self.failure = exc
            raise


def opened(login: Mapping[str, str]) -> DeltaTable:
    """Open the table of a login."""
    options = {name: value for name, value in login.items() if name != WRITTEN_PLACE}
    return DeltaTable(login[WRITTEN_PLACE], storage_options=options or None)


def text_keys(table: DeltaTable) -> frozenset[str]:
    """Return the columns of texts by which a table is divided. An empty text would be NULL."""
    schema = schema_of(table)
    names = table.metadata().partition_columns
    return frozenset(name for name in names if pa.types.is_string(schema.field(name).type))


def has_empty(array: pa.Array) -> bool:
    """Return whether a text is empty."""
    return bool(pc.any(pc.equal(pc.binary_length(array), 0)).as_py())


def quoted(name: str) -> str:
    """Return a name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def schema_of(table: DeltaTable) -> pa.Schema:
    """Return the columns of a table."""
    return pa.schema(table.schema().to_arrow())


def _is_kept(type_: pa.DataType) -> bool:
    """Return whether the library writes values of a type exactly to the names of folders."""
    has_point = pa.types.is_decimal(type_) and type_.scale > 0
    return not has_point and not pa.types.is_binary(type_)


def _constraints(table: DeltaTable) -> str:
    settings = table.metadata().configuration
    kept = sorted(value for key, value in settings.items() if key.startswith(_CONSTRAINT))
    for each in table.schema().fields:
        kept += [] if each.nullable else [f"{each.name} IS NOT NULL"]
        if made := each.metadata.get(_GENERATED):
            kept.append(f"{each.name} = {made}")
    return "; ".join(kept)[:_LONGEST]


def _reason(exc: Exception, login: Mapping[str, str]) -> str:
    """Return why a table cannot be written, without places and secrets."""
    if isinstance(exc, TableNotFoundError):
        return "the table is not there"
    said = str(exc).splitlines()[0] if str(exc) else "the table cannot be written"
    said = said.rpartition(" error: ")[2]
    hidden = (value for name, value in login.items() if not name.endswith(_PUBLIC))
    for value in sorted(filter(None, hidden), key=len, reverse=True):
        said = said.replace(value, "...")
    return said
