"""The actions of Flight SQL, and those of Flight that its drivers use."""

from collections.abc import Callable, Mapping, Sequence

from pyarrow import flight

from caraway_core.ids import QueryId
from caraway_gateway.flight import commands
from caraway_gateway.flight.callers import Caller
from caraway_gateway.flight.readings import WaitingRoom
from caraway_gateway.flight.sql import handles, messages, substrait_plans
from caraway_gateway.flight.sql.metadata import CATALOG, PUBLIC
from caraway_gateway.flight.sql.preparing import Preparing
from caraway_gateway.flight.sql.protocol import Flight_pb2 as wire
from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as proto
from caraway_gateway.flight.statements import Statements
from caraway_gateway.services import Services
from caraway_serving.flight import statuses

DESCRIPTIONS: Mapping[str, str] = {
    "CreatePreparedStatement": "Prepare a statement; the answer is its handle.",
    "CreatePreparedSubstraitPlan": "Prepare a Substrait plan; the answer is its handle.",
    "ClosePreparedStatement": "Forget a prepared statement.",
    "CancelFlightInfo": "End a statement that GetFlightInfo began.",
    "CancelQuery": "End a statement that GetFlightInfo began; the older form.",
    "SetSessionOptions": "Set the catalog or the schema of a session; each has one value.",
    "GetSessionOptions": "Tell the options of a session.",
    "CloseSession": "End a session.",
}
_REFUSED = frozenset({"BeginTransaction", "BeginSavepoint", "EndTransaction", "EndSavepoint"})
_NONE: Sequence[bytes] = ()
_SESSION: Mapping[str, str] = {"catalog": CATALOG, "schema": PUBLIC}
_CLOSED = wire.CloseSessionResult.CLOSED


def is_known(name: str) -> bool:
    """Return whether an action is one of these, whether supported or refused."""
    return name in DESCRIPTIONS or name in _REFUSED


class Actions:
    """Does actions in the threads of calls."""

    def __init__(
        self,
        services: Services,
        statements: Statements,
        preparing: Preparing,
        waiting: WaitingRoom,
    ) -> None:
        self._services = services
        self._statements = statements
        self._preparing = preparing
        self._waiting = waiting

    def act(
        self, context: flight.ServerCallContext, caller: Caller, name: str, body: bytes
    ) -> Sequence[bytes]:
        """Do an action, and return its results."""
        if name in _REFUSED:
            raise statuses.Unimplemented(
                "transactions and savepoints are not supported; use autocommit"
            )
        doing: Mapping[str, Callable[[], Sequence[bytes]]] = {
            "CreatePreparedStatement": lambda: [self._preparing.create(context, caller, body)],
            "CreatePreparedSubstraitPlan": lambda: [self._prepare_plan(context, caller, body)],
            "ClosePreparedStatement": lambda: self._closed(caller, body),
            "CancelFlightInfo": lambda: [self._cancel_info(context, caller, body)],
            "CancelQuery": lambda: [self._cancel_query(context, caller, body)],
            "SetSessionOptions": lambda: [_set_options(body)],
            "GetSessionOptions": lambda: [_options(body)],
            "CloseSession": lambda: [_close_session(caller)],
        }
        return doing[name]()

    def _prepare_plan(
        self, context: flight.ServerCallContext, caller: Caller, body: bytes
    ) -> bytes:
        request = messages.read_as(proto.ActionCreatePreparedSubstraitPlanRequest, body)
        sql = substrait_plans.sql_of(self._statements, context, caller, request)
        return self._preparing.keep(context, caller, sql)

    def _closed(self, caller: Caller, body: bytes) -> Sequence[bytes]:
        self._preparing.close(caller, body)
        return _NONE

    def _cancel_info(self, context: flight.ServerCallContext, caller: Caller, body: bytes) -> bytes:
        request = messages.parse(wire.CancelFlightInfoRequest, body)
        is_cancelled = self._cancel(context, caller, request.info)
        status = (
            wire.CANCEL_STATUS_CANCELLED if is_cancelled else wire.CANCEL_STATUS_NOT_CANCELLABLE
        )
        return messages.encoded(wire.CancelFlightInfoResult(status=status))

    def _cancel_query(
        self, context: flight.ServerCallContext, caller: Caller, body: bytes
    ) -> bytes:
        request = messages.read_as(proto.ActionCancelQueryRequest, body)
        kinds = proto.ActionCancelQueryResult
        info = messages.parse(wire.FlightInfo, request.info)
        is_cancelled = self._cancel(context, caller, info)
        result = (
            kinds.CANCEL_RESULT_CANCELLED if is_cancelled else kinds.CANCEL_RESULT_NOT_CANCELLABLE
        )
        return messages.packed(kinds(result=result))

    def _cancel(
        self, context: flight.ServerCallContext, caller: Caller, info: wire.FlightInfo
    ) -> bool:
        """End the statements that the tickets name, if they are the caller's and still there."""
        sent = [each.ticket.ticket for each in info.endpoint]
        parallel = self._statements.parallel
        ids = {
            found
            for each in sent
            if (found := _query_id(each) or parallel.query_of(each, caller)) is not None
        }

        async def stop() -> bool:
            stopped = [self._stopped(query_id, caller) for query_id in ids]
            return any(stopped)

        return self._statements.wait(stop(), context)

    def _stopped(self, query_id: QueryId, caller: Caller) -> bool:
        query = self._services.queries.active.find(query_id, caller.principal.id)
        if query is not None:
            query.stop("cancelled")
        waiting = self._waiting.take_reading(query_id, caller.principal.id)
        if waiting is not None:
            waiting.close()
        return query is not None or waiting is not None


def _close_session(caller: Caller) -> bytes:
    caller.end_session()
    return messages.encoded(wire.CloseSessionResult(status=_CLOSED))


def _options(body: bytes) -> bytes:
    """Return the catalog and the schema of names that have none."""
    messages.parse(wire.GetSessionOptionsRequest, body)
    result = wire.GetSessionOptionsResult()
    for name, value in _SESSION.items():
        result.session_options[name].string_value = value
    return messages.encoded(result)


def _set_options(body: bytes) -> bytes:
    """Say of each option whether it may be set; none has a second value."""
    kinds = wire.SetSessionOptionsResult
    request = messages.parse(wire.SetSessionOptionsRequest, body)
    result = kinds()
    for name, option in request.session_options.items():
        if name not in _SESSION:
            result.errors[name].value = kinds.INVALID_NAME
        elif option.string_value != _SESSION[name]:
            result.errors[name].value = kinds.INVALID_VALUE
    return messages.encoded(result)


def _query_id(ticket: bytes) -> QueryId | None:
    if not messages.is_message(ticket):
        return commands.waiting_in(ticket)
    message = messages.read(ticket)
    if not isinstance(message, proto.TicketStatementQuery):
        return None
    return handles.read(message.statement_handle).query_id
