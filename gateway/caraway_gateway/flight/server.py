"""The RPCs. Each reads its message, asks the event loop, and encodes the answer."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn, TypeVar

import pyarrow as pa
from pyarrow import flight

from caraway_core.security import tickets
from caraway_core.sqltext import writing
from caraway_gateway.flight import actions, bound, callers, commands, parts
from caraway_gateway.flight.callers import Caller
from caraway_gateway.flight.commands import TicketText
from caraway_gateway.flight.ingesting import Ingesting
from caraway_gateway.flight.parallel import ParallelReads
from caraway_gateway.flight.readings import WaitingRoom
from caraway_gateway.flight.sql import FlightSql, binding
from caraway_gateway.flight.sql import actions as sql_actions
from caraway_gateway.flight.sql import messages as sql_messages
from caraway_gateway.flight.statements import COUNTED, Statements, info_of
from caraway_gateway.services import Services
from caraway_serving.flight import messages, statuses
from caraway_serving.flight.bridge import Bridge
from caraway_serving.formats import columns
from caraway_serving.tls import ServerTls

_Sent = TypeVar("_Sent", str, bytes, pa.Buffer)


class FlightServer(flight.FlightServerBase):  # type: ignore[misc] # pyarrow has no types
    """Answers in gRPC's threads. It listens as soon as it is made."""

    def __init__(
        self,
        services: Services,
        bridge: Bridge,
        waiting: WaitingRoom,
        parallel: ParallelReads,
        location: str,
        gate: callers.CallGate,
        tls: ServerTls | None,
    ) -> None:
        super().__init__(
            location,
            auth_handler=gate.handshake,
            tls_certificates=[(tls.certificate, tls.key)] if tls else None,
            verify_client=bool(tls and tls.client_ca),
            root_certificates=tls.client_ca if tls else None,
            middleware={callers.KEY: gate},
        )
        self._services = services
        self._bridge = bridge
        self._statements = Statements(services, bridge, waiting, parallel)
        self._ingesting = Ingesting(services, self._statements)
        self._sql = FlightSql(services, self._statements, waiting, self._ingesting)

    def get_flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        caller = callers.of(context)
        with statuses.answered(caller.span):
            if sql_messages.is_asked(descriptor):
                return self._sql.info(context, descriptor)
            if (job_id := parts.asked(descriptor)) is not None:
                coroutine_type = parts.find(self._services.jobs.service, caller, job_id)
                return self._bridge.run_work(coroutine_type, context).info(descriptor)
            sql = self._bounded(commands.read_descriptor(descriptor))
            if _is_deferred(caller, sql):
                return info_of(COUNTED, descriptor, TicketText(sql).encode())
            return self._statements.info(
                context,
                descriptor,
                caller.request(sql),
                lambda query_id: TicketText(sql, query_id).encode(),
            )

    def get_schema(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.SchemaResult:
        caller = callers.of(context)
        with statuses.answered(caller.span):
            if sql_messages.is_asked(descriptor):
                return self._sql.schema(context, descriptor)
            if (job_id := parts.asked(descriptor)) is not None:
                coroutine_type = parts.find(self._services.jobs.service, caller, job_id)
                return flight.SchemaResult(self._bridge.run_work(coroutine_type, context).schema)
            sql = self._bounded(commands.read_descriptor(descriptor))
            if _is_deferred(caller, sql):
                return flight.SchemaResult(COUNTED)
            schema = self._statements.begun_schema(caller.request(sql))
            return flight.SchemaResult(self._bridge.run_work(schema, context))

    def do_get(
        self, context: flight.ServerCallContext, ticket: flight.Ticket
    ) -> flight.FlightDataStream:
        caller = callers.of(context)
        with statuses.answered(caller.span):
            if sql_messages.is_message(ticket.ticket):
                return self._sql.stream(context, ticket.ticket)
            if bound.is_bound(ticket.ticket):
                sql, values = bound.read(
                    self._bounded(ticket.ticket), self._services.max_body_bytes
                )
                request = replace(caller.request(sql), parameters=binding.values(sql, values))
                return self._statements.rows(context, request)
            if tickets.is_part(ticket.ticket):
                return self._statements.part(context, self._bounded(ticket.ticket))
            if (part := parts.read_ticket(ticket.ticket)) is not None:
                rows = self._bridge.run_work(
                    parts.read(self._services.jobs.service, caller, *part), context
                )
                cut = (
                    each for batch in rows.to_batches() for each in messages.cut(batch, rows.schema)
                )
                return flight.GeneratorStream(rows.schema, cut)
            text = commands.read_ticket(ticket)
            self._bounded(text.sql)
            return self._statements.rows(context, caller.request(text.sql), text.query_id)

    def list_flights(
        self, context: flight.ServerCallContext, criteria: bytes
    ) -> Iterator[flight.FlightInfo]:
        with statuses.answered(callers.of(context).span):
            return iter(self._bridge.run_work(self._tables(), context))

    def list_actions(self, context: flight.ServerCallContext) -> list[flight.ActionType]:
        own = (flight.ActionType(name, says) for name, says in self._sql.action_types.items())
        return [*actions.known(), *own]

    def do_action(
        self, context: flight.ServerCallContext, action: flight.Action
    ) -> Iterator[flight.Result]:
        caller = callers.of(context)
        with statuses.answered(caller.span):
            body = self._bounded(action.body).to_pybytes()
            if sql_actions.is_known(action.type):
                return map(flight.Result, self._sql.act(context, action.type, body))
            if action.type not in actions.DESCRIPTIONS:
                raise statuses.Unimplemented(
                    f"there is no action '{action.type}'; ListActions names those that there are"
                )
            answer = actions.act(self._services.jobs.service, caller, action.type, body)
            return iter([flight.Result(self._bridge.run_work(answer, context))])

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        with statuses.answered(callers.of(context).span):
            if sql_messages.is_asked(descriptor):
                self._sql.put(context, descriptor, reader, writer)
                return
            dataset = commands.read_target(descriptor)
            count = self._ingesting.write_upload(context, dataset, reader, "flight")
            writer.write(pa.py_buffer(json.dumps({"count": count}).encode()))

    def do_exchange(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.MetadataRecordBatchWriter,
    ) -> NoReturn:
        _refuse("DoExchange")

    def _bounded(self, sent: _Sent) -> _Sent:
        """Pass a message on if it is not larger than a body over HTTP may be.

        Raises:
            InvalidArgument: it is larger.
        """
        limit = self._services.max_body_bytes
        if len(sent) > limit:
            raise statuses.InvalidArgument(f"the request is larger than {limit} bytes")
        return sent

    async def _tables(self) -> list[flight.FlightInfo]:
        tables = ((state.name, state.spec) for state in self._services.catalog.datasets.values())
        return [
            _table_info(name, columns.without_views(spec.schema))
            for name, spec in tables
            if spec is not None and spec.query is None
        ]


def _is_deferred(caller: Caller, sql: str) -> bool:
    """Asking about a write must not write; only DoGet runs it. Who may not write hears so now."""
    return caller.principal.may_write and writing.begins_with_write(sql)


def _table_info(name: str, schema: pa.Schema) -> flight.FlightInfo:
    quoted = ".".join(f'"{part}"' for part in name.split("."))
    sql = f"SELECT * FROM {quoted}"
    return info_of(schema, flight.FlightDescriptor.for_command(sql), TicketText(sql).encode())


def _refuse(what: str) -> NoReturn:
    raise statuses.Unimplemented(f"{what} is not implemented yet; {commands.WHAT_WORKS}")
