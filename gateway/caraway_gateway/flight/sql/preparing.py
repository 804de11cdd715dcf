"""Prepared statements: made, bound and run."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyarrow import flight

from caraway_core.errors import CarawayError, ParametersError
from caraway_core.sqltext import placeholders
from caraway_gateway.flight import uploads
from caraway_gateway.flight.callers import Caller
from caraway_gateway.flight.sql import binding, messages, running
from caraway_gateway.flight.sql.prepared import MOST_BYTES, PreparedStatement, PreparedStatements
from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as proto
from caraway_gateway.flight.sql.running import UNKNOWN_COUNT, is_write, request_of
from caraway_gateway.flight.statements import COUNTED, Statements
from caraway_gateway.flight.uploads import UploadRoom
from caraway_scheduler.queries.requests import QueryRequest
from caraway_serving.flight import statuses

_NO_TRANSACTIONS = "transactions are not supported: every statement is committed by itself"


class Preparing:
    """The calls that concern prepared statements."""

    def __init__(
        self,
        statements: Statements,
        prepared: PreparedStatements,
        most_message_bytes: int,
        room: UploadRoom,
    ) -> None:
        self._statements = statements
        self._prepared = prepared
        self._most_message_bytes = most_message_bytes
        self._room = room

    def create(self, context: flight.ServerCallContext, caller: Caller, body: bytes) -> bytes:
        """Keep a statement; return its handle, its columns and its parameters."""
        asked = messages.read_as(proto.ActionCreatePreparedStatementRequest, body)
        refuse_transaction(asked)
        return self.keep(context, caller, asked.query)

    def keep(self, context: flight.ServerCallContext, caller: Caller, sql: str) -> bytes:
        """Keep a statement; return the message that describes it."""
        found = placeholders.find(sql)
        request = request_of(caller, sql, dict.fromkeys(found.names))
        try:
            columns = self._statements.wait(running.schema(self._statements, request), context)
        except CarawayError:
            if not found.names:
                raise
            # NULL is not a value for every parameter, such as that of a LIMIT.
            columns = COUNTED if is_write(request) else None
        handle = self._prepared.add(PreparedStatement(sql, caller.principal.id, found))
        made = proto.ActionCreatePreparedStatementResult(prepared_statement_handle=handle.encode())
        if columns is not None and not is_write(request):
            made.dataset_schema = columns.serialize().to_pybytes()
        if found.names:
            types = self._statements.wait(self._types(request), context)
            made.parameter_schema = binding.schema(found, types).serialize().to_pybytes()
        return messages.packed(made)

    async def _types(self, request: QueryRequest) -> Mapping[str, pa.DataType]:
        """Return the types of parameters; none where the engine cannot plan without values."""
        try:
            return await self._statements.parameters(request)
        except CarawayError:
            return {}

    def close(self, caller: Caller, body: bytes) -> None:
        """Forget a statement."""
        asked = messages.read_as(proto.ActionClosePreparedStatementRequest, body)
        self._prepared.close(handle_of(asked), caller.principal.id)

    def bind(
        self,
        context: flight.ServerCallContext,
        caller: Caller,
        handle: str,
        reader: flight.MetadataRecordBatchReader,
    ) -> None:
        """Take rows of parameters.

        Raises:
            ParametersError: they have not the columns that the statement needs.
        """
        statement = self._prepared.find(handle, caller.principal.id)
        most_message_bytes = self._most_message_bytes
        with self._room.share() as take:
            rows = uploads.collected(context, reader, MOST_BYTES, most_message_bytes, take)
            if rows.num_columns or statement.found.names:
                binding.columns(statement.found, rows)
            self._prepared.bind(handle, caller.principal.id, rows)

    def request(self, caller: Caller, handle: str) -> QueryRequest:
        """Ask for a prepared statement with the one row that is bound.

        Raises:
            ParametersError: several rows are bound.
        """
        statement = self._prepared.find(handle, caller.principal.id)
        rows = statement.rows
        if rows is None or not statement.found.names:
            return request_of(caller, statement.sql)
        if rows.num_rows != 1:
            raise ParametersError(
                f"a query takes one row of parameters, but {rows.num_rows} are bound; only "
                "updates take several"
            )
        values = binding.row(binding.columns(statement.found, rows), 0)
        return request_of(caller, statement.sql, values)

    def update(self, context: flight.ServerCallContext, caller: Caller, handle: str) -> int:
        """Run a prepared statement for each row that is bound; return how many rows it changed.

        Raises:
            CarawayError: it failed for a row; the message names the row.
        """
        statement = self._prepared.find(handle, caller.principal.id)
        rows = statement.rows
        if rows is None or not statement.found.names:
            request = request_of(caller, statement.sql)
            return self._statements.wait(running.count(self._statements, request), context)
        bound = binding.columns(statement.found, rows)
        changed = 0
        for index in range(rows.num_rows):
            request = request_of(caller, statement.sql, binding.row(bound, index))
            try:
                count = self._statements.wait(running.count(self._statements, request), context)
            except CarawayError as exc:
                exc.message = _of_row(exc.message, index + 1, rows.num_rows)
                raise
            if count == UNKNOWN_COUNT:
                changed = UNKNOWN_COUNT
            elif changed != UNKNOWN_COUNT:
                changed += count
        return changed


def _of_row(message: str, number: int, total: int) -> str:
    if total == 1:
        return message
    before = f"the {number - 1:,} before it are written" if number > 1 else "nothing is written"
    return f"row {number:,} of {total:,}: {message} ({before})"


def handle_of(message: Any) -> str:
    """Return the handle that a message names.

    Raises:
        NotFound: it is none of ours.
    """
    try:
        handle: str = message.prepared_statement_handle.decode()
    except UnicodeDecodeError as exc:
        raise statuses.NotFound("there is no such prepared statement") from exc
    return handle


def refuse_transaction(message: Any) -> None:
    """Refuse calls inside a transaction.

    Raises:
        Unimplemented: there are none.
    """
    if message.transaction_id:
        raise statuses.Unimplemented(_NO_TRANSACTIONS)
