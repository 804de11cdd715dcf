"""Dispatches messages of Flight SQL to the module of their family."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from google.protobuf.message import Message
from pyarrow import flight

from caraway_gateway.flight import callers
from caraway_gateway.flight.callers import Caller
from caraway_gateway.flight.ingesting import NO_CREATION, Ingesting, Mode
from caraway_gateway.flight.readings import WaitingRoom
from caraway_gateway.flight.sql import (
    actions,
    handles,
    messages,
    metadata,
    preparing,
    running,
    substrait_plans,
)
from caraway_gateway.flight.sql.handles import StatementHandle
from caraway_gateway.flight.sql.metadata import Metadata
from caraway_gateway.flight.sql.prepared import PreparedStatements
from caraway_gateway.flight.sql.preparing import Preparing
from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as proto
from caraway_gateway.flight.sql.running import is_write, request_of
from caraway_gateway.flight.statements import Statements, info_of
from caraway_gateway.services import Services
from caraway_scheduler.queries.requests import QueryRequest
from caraway_serving.flight import statuses

_QUERIES = (
    proto.CommandPreparedStatementQuery,
    proto.CommandStatementQuery,
    proto.CommandStatementSubstraitPlan,
)
_OPTIONS = proto.CommandStatementIngest.TableDefinitionOptions


class FlightSql:
    """Everything that a Flight SQL driver may ask of this process."""

    def __init__(
        self,
        services: Services,
        statements: Statements,
        waiting: WaitingRoom,
        ingesting: Ingesting,
    ) -> None:
        self._ingesting = ingesting
        quotas = services.manifest.current.runtime.quotas
        self.prepared = PreparedStatements(quotas.max_prepared_statements)
        services.quotas["prepared_statements"] = self.prepared.quota
        self._statements = statements
        self._metadata = Metadata(services, self._statements)
        self._preparing = Preparing(
            self._statements, self.prepared, services.max_message_bytes, ingesting.room
        )
        self._actions = actions.Actions(services, self._statements, self._preparing, waiting)

    @property
    def action_types(self) -> Mapping[str, str]:
        """The actions that `act` takes, with a line about each."""
        return actions.DESCRIPTIONS

    def info(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
    ) -> flight.FlightInfo:
        """Begin what a command asks for."""
        caller = callers.of(context)
        command = messages.read(descriptor.command)
        if (columns := metadata.schema(command)) is not None:
            return info_of(columns, descriptor, descriptor.command)
        request, handle = self._asked(context, caller, command)
        if caller.principal.may_write and is_write(request):
            # Asking about a write must not write; only DoGet runs it. Without columns, because a
            # driver that has them returns before its DoGet has begun, and may never send it.
            return info_of(None, descriptor, handle.encode())
        return self._statements.info(
            context,
            descriptor,
            request,
            lambda query_id: StatementHandle(handle.sql, handle.prepared, query_id).encode(),
        )

    def schema(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.SchemaResult:
        """Return the columns of the answer to a command."""
        caller = callers.of(context)
        command = messages.read(descriptor.command)
        columns = metadata.schema(command)
        if columns is None:
            request, _ = self._asked(context, caller, command)
            columns = self._statements.wait(running.schema(self._statements, request), context)
        return flight.SchemaResult(columns)

    def stream(self, context: flight.ServerCallContext, ticket: bytes) -> flight.FlightDataStream:
        """Send the rows that a ticket stands for."""
        caller = callers.of(context)
        message = messages.read(ticket)
        if metadata.schema(message) is not None:
            rows = self._statements.wait(self._metadata.rows(caller, message), context)
            return flight.RecordBatchStream(rows)
        if isinstance(message, proto.TicketStatementQuery):
            handle = handles.read(message.statement_handle)
            if handle.prepared:
                request = self._preparing.request(caller, handle.prepared)
            else:
                request = request_of(caller, handle.sql)
            return self._statements.rows(context, request, handle.query_id)
        if isinstance(message, _QUERIES):
            return self._statements.rows(context, self._asked(context, caller, message)[0])
        raise statuses.InvalidArgument(f"{type(message).__name__} is no ticket for rows")

    def put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """Take rows, or a statement that changes rows."""
        caller = callers.of(context)
        command = messages.read(descriptor.command)
        match command:
            case proto.CommandStatementUpdate():
                preparing.refuse_transaction(command)
                request = request_of(caller, command.query)
                count = self._statements.wait(running.count(self._statements, request), context)
                _counted(writer, count)
            case proto.CommandPreparedStatementQuery():
                handle = preparing.handle_of(command)
                self._preparing.bind(context, caller, handle, reader)
                result = proto.DoPutPreparedStatementResult(
                    prepared_statement_handle=handle.encode()
                )
                writer.write(pa.py_buffer(messages.encoded(result)))
            case proto.CommandPreparedStatementUpdate():
                handle = preparing.handle_of(command)
                self._preparing.bind(context, caller, handle, reader)
                _counted(writer, self._preparing.update(context, caller, handle))
            case proto.CommandStatementIngest():
                _counted(writer, _ingest(self._ingesting, context, command, reader))
            case proto.CommandStatementSubstraitPlan():
                request = substrait_plans.request(self._statements, context, caller, command)
                count = self._statements.wait(running.count(self._statements, request), context)
                _counted(writer, count)
            case _:
                raise statuses.Unimplemented(f"DoPut takes no {type(command).__name__}")

    def act(self, context: flight.ServerCallContext, name: str, body: bytes) -> Sequence[bytes]:
        """Do one of the known actions."""
        return self._actions.act(context, callers.of(context), name, body)

    def _asked(
        self, context: flight.ServerCallContext, caller: Caller, command: Message
    ) -> tuple[QueryRequest, StatementHandle]:
        match command:
            case proto.CommandStatementQuery():
                preparing.refuse_transaction(command)
                return request_of(caller, command.query), StatementHandle(command.query)
            case proto.CommandPreparedStatementQuery():
                handle = preparing.handle_of(command)
                request = self._preparing.request(caller, handle)
                if not request.parameters:
                    # Another connection can redeem it, also after the statement was closed.
                    return request, StatementHandle(request.sql)
                return request, StatementHandle(prepared=handle)
            case proto.CommandStatementSubstraitPlan():
                request = substrait_plans.request(self._statements, context, caller, command)
                return request, StatementHandle(request.sql)
            case _:
                raise statuses.Unimplemented(f"{type(command).__name__} is no query")


def _counted(writer: flight.FlightMetadataWriter, count: int) -> None:
    result = proto.DoPutUpdateResult(record_count=count)
    writer.write(pa.py_buffer(messages.encoded(result)))


def _ingest(
    ingesting: Ingesting,
    context: flight.ServerCallContext,
    command: Any,
    reader: flight.MetadataRecordBatchReader,
) -> int:
    """Write the rows that follow a CommandStatementIngest, and count them.

    Raises:
        InvalidArgument, NotFound, Unimplemented, QueryError: nothing was written.
    """
    preparing.refuse_transaction(command)
    if command.temporary:
        raise statuses.Unimplemented("temporary tables are not supported")
    if command.catalog and command.catalog != metadata.CATALOG:
        raise statuses.NotFound(f"there is no catalog '{command.catalog}'")
    dataset = f"{command.schema}.{command.table}" if command.schema else command.table
    mode = _mode(command.table_definition_options, dataset)
    return ingesting.write_upload(context, dataset, reader, "flightsql", mode)


def _mode(options: Any, dataset: str) -> Mode:
    match options.if_exists:
        case _OPTIONS.TABLE_EXISTS_OPTION_APPEND:
            return "append"
        case _OPTIONS.TABLE_EXISTS_OPTION_REPLACE:
            return "replace"
        case _OPTIONS.TABLE_EXISTS_OPTION_FAIL:
            raise statuses.InvalidArgument(f"dataset '{dataset}' is not created: {NO_CREATION}")
        case _:
            raise statuses.InvalidArgument(
                "the command must say what to do where the table exists: append or replace"
            )
