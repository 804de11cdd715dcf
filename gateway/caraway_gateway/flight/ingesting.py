"""Rows that clients upload into datasets: checked, and then inserted by one statement."""

from dataclasses import replace
from typing import Literal

import pyarrow as pa
from pyarrow import flight

from caraway_acceleration.changes.early_entries import EarlyEntries, EarlyRows
from caraway_core.errors import QueryForbiddenError, TableNotFoundError
from caraway_core.ids import TableName
from caraway_core.statements import GivenRows
from caraway_gateway.flight import callers, uploads
from caraway_gateway.flight.arriving import ArrivingRows
from caraway_gateway.flight.statements import Statements
from caraway_gateway.flight.uploads import UploadRoom
from caraway_gateway.services import Services
from caraway_scheduler.catalog.states import source_of
from caraway_scheduler.queries.active import Protocol
from caraway_scheduler.queries.requests import QueryRequest
from caraway_serving import limits
from caraway_serving.flight import statuses
from caraway_serving.limits import TokenBucket

MOST_BYTES = 256 * 1024 * 1024
"""The rows of an upload are in memory until a version names them."""
MOST_A_SECOND = 100
Mode = Literal["append", "replace"]
NO_CREATION = "uploads create no datasets; add it to the manifest"
_ONLY_READS = "this key may only read; writing needs a key that ends in :rw"


class Ingesting:
    """Writes uploads into datasets that are `read_write`, as INSERT does."""

    def __init__(self, services: Services, statements: Statements) -> None:
        self._services = services
        self._statements = statements
        self.room = UploadRoom()
        self._rate = TokenBucket()

    def write_upload(
        self,
        context: flight.ServerCallContext,
        dataset: str,
        reader: flight.MetadataRecordBatchReader,
        protocol: Protocol,
        mode: Mode = "append",
    ) -> int:
        """Write all rows of an upload, or none; return how many there were.

        Where the dataset has a log, replacing its rows is one change.

        Raises:
            StatusError, QueryError: nothing was written.
        """
        caller = callers.of(context)
        if not caller.principal.may_write:
            raise QueryForbiddenError(_ONLY_READS)
        self._check_rate()
        table = _quoted(dataset)

        def request(sql: str, given: GivenRows | None = None) -> QueryRequest:
            return replace(caller.request(sql), protocol=protocol, given=given)

        # Before the rows: who uploads in vain learns it early.
        try:
            looked = self._run(context, request(f"SELECT * FROM {table} LIMIT 0"))
        except TableNotFoundError as exc:
            raise statuses.NotFound(f"there is no dataset '{dataset}': {NO_CREATION}") from exc
        self._check_access(dataset)
        target, replaces = TableName(dataset.removeprefix("public.")), mode == "replace"
        with self.room.share() as take:
            batches = uploads.received(
                context,
                reader,
                MOST_BYTES,
                self._services.max_message_bytes,
                take,
                lambda sent: check(sent, looked.schema, dataset),
            )
            with self._arriving(context, target, looked.schema, replaces=replaces) as arriving:
                for batch in batches:
                    arriving.add(batch)
                rows, changes = arriving.finish(reader.schema)
            if replaces and not self._is_logged(target):
                # Without a log there is nothing that would make one change of both.
                self._run(context, request(f"DELETE FROM {table}"))
                replaces = False
            count: int = rows.num_rows
            if count or replaces:
                given = EarlyRows.from_table(rows, target, replaces=replaces)
                given = replace(given, changes=changes)
                names = ", ".join(map(_quoted_name, rows.column_names))
                source = f"SELECT {names} FROM {_quoted(given.name)}"
                self._run(context, request(f"INSERT INTO {table} ({names}) {source}", given))
            return count

    def _arriving(
        self,
        context: flight.ServerCallContext,
        target: TableName,
        dataset_schema: pa.Schema,
        *,
        replaces: bool,
    ) -> ArrivingRows:
        async def begin() -> EarlyEntries | None:
            if not self._is_logged(target):
                return None
            return self._services.accelerations.early_entries(target, replaces=replaces)

        return ArrivingRows(
            lambda rows: fitting(rows, dataset_schema, target),
            MOST_BYTES,
            lambda: self._statements.wait(begin(), context),
            self._statements.post,
            lambda early: self._statements.wait(early.finished(), context),
        )

    def _is_logged(self, target: TableName) -> bool:
        return target in self._services.accelerations.sources().logged

    def _check_rate(self) -> None:
        """Count an upload. Each one of an accelerated dataset is a durable write.

        Raises:
            Unavailable: there were too many in the last second.
        """
        settings = self._services.manifest.current.runtime.flight
        self._rate.refill_at(MOST_A_SECOND if settings.do_put_rate_limit_enabled else None)
        if wait_s := self._rate.take_token():
            raise statuses.Unavailable(
                f"more than {MOST_A_SECOND} uploads a second; upload more rows at once, or set "
                "runtime.flight.do_put_rate_limit_enabled to false; nothing of this one is "
                f"written; try again in {limits.retry_after(wait_s)} s"
            )

    def _check_access(self, dataset: str) -> None:
        """Refuse an upload before it is read; its INSERT would refuse it after that.

        Raises:
            QueryForbiddenError: the dataset accepts no writes.
        """
        _, writable = self._services.queries.catalog()
        name = TableName(dataset.removeprefix("public."))
        # Of an accelerated dataset it is the source that is named.
        if not writable & {name, source_of(name)}:
            raise QueryForbiddenError(
                f"dataset '{dataset}' cannot be written to; give it `access: read_write` in the "
                "manifest"
            )

    def _run(self, context: flight.ServerCallContext, request: QueryRequest) -> pa.Table:
        return self._statements.wait(self._statements.collected(request), context)


def check(sent: pa.Schema, dataset_schema: pa.Schema, dataset: str) -> None:
    """Compare the columns of an upload with those of the dataset, by name and type.

    Raises:
        InvalidArgument: one is not there, is there twice, or has another type.
    """
    if not sent.names:
        raise statuses.InvalidArgument("the upload has no columns")
    known = {field.name: field for field in dataset_schema}
    seen: set[str] = set()
    for field in sent:
        if field.name in seen:
            raise statuses.InvalidArgument(f"the upload has two columns '{field.name}'")
        seen.add(field.name)
        if field.name not in known:
            raise statuses.InvalidArgument(
                f"dataset '{dataset}' has no column '{field.name}'; it has "
                f"{', '.join(map(repr, known))}"
            )
        wanted = known[field.name].type
        if not _is_alike(field.type, wanted):
            raise statuses.InvalidArgument(
                f"column '{field.name}' of dataset '{dataset}' is {wanted}, but the upload has "
                f"{field.type}; cast it before it is sent"
            )
    for name, field in known.items():
        if name not in seen and not field.nullable:
            raise statuses.InvalidArgument(
                f"column '{name}' of dataset '{dataset}' may not be NULL, and the upload lacks it"
            )


def fitting(rows: pa.Table, dataset_schema: pa.Schema, dataset: str) -> pa.Table:
    """Return rows in the types of the dataset.

    Raises:
        InvalidArgument: a value is NULL that may not be, or does not fit.
    """
    fields = [dataset_schema.field(name) for name in rows.column_names]
    for field in fields:
        if not field.nullable and rows.column(field.name).null_count:
            raise statuses.InvalidArgument(
                f"column '{field.name}' of dataset '{dataset}' may not be NULL; nothing is written"
            )
    try:
        return rows.cast(pa.schema(fields))
    except pa.ArrowMemoryError as exc:
        raise uploads.without_memory(MOST_BYTES, uploads.too_many_rows(MOST_BYTES)) from exc
    except pa.ArrowException as exc:
        raise statuses.InvalidArgument(
            f"the rows do not fit into dataset '{dataset}': {exc}; nothing is written"
        ) from exc


def _is_alike(sent: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether two types hold the same values, in any layout."""
    sent, wanted = _plain(sent), _plain(wanted)
    if pa.types.is_list(sent) and pa.types.is_list(wanted):
        # The name of the elements differs between writers.
        return _is_alike(sent.value_type, wanted.value_type)
    if pa.types.is_struct(sent) and pa.types.is_struct(wanted):
        pairs = list(zip(sent, wanted, strict=False))
        is_same = sent.num_fields == wanted.num_fields and all(a.name == b.name for a, b in pairs)
        return is_same and all(_is_alike(a.type, b.type) for a, b in pairs)
    return bool(sent == wanted or pa.types.is_null(sent))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_large_list(kind):
        return pa.list_(kind.value_field)
    return kind


def _quoted(dataset: str) -> str:
    return ".".join(map(_quoted_name, dataset.split(".")))


def _quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
