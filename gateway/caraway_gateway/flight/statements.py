"""Statements on their way through the query service, for the threads of calls."""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TypeVar

import pyarrow as pa
from pyarrow import flight

from caraway_core.errors import QueryCancelledError
from caraway_core.ids import QueryId
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.security.tickets import PartTicket
from caraway_core.sqltext import writing
from caraway_gateway.flight import bound, callers
from caraway_gateway.flight.callers import Caller
from caraway_gateway.flight.parallel import ParallelReads
from caraway_gateway.flight.readings import FlightReading, WaitingRoom
from caraway_gateway.services import Services
from caraway_scheduler.queries.requests import QueryRequest
from caraway_serving.flight import messages, statuses
from caraway_serving.flight.bridge import Bridge

COUNTED = pa.schema([pa.field("count", pa.uint64(), nullable=False)])
_GONE = QueryCancelledError("the client went away")
_T = TypeVar("_T")


class Statements:
    """Runs statements. Its methods block, unless they are coroutines."""

    def __init__(
        self, services: Services, bridge: Bridge, waiting: WaitingRoom, parallel: ParallelReads
    ) -> None:
        self._services = services
        self.parallel = parallel
        self._bridge = bridge
        self._waiting = waiting

    def wait(self, work: Coroutine[object, object, _T], context: flight.ServerCallContext) -> _T:
        """Wait for the event loop as long as the client does."""
        return self._bridge.run_work(work, context)

    def post(self, action: Callable[[], None]) -> None:
        """Do something on the event loop soon."""
        self._bridge.post(action)

    def info(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        request: QueryRequest,
        ticket: Callable[[QueryId], bytes],
    ) -> flight.FlightInfo:
        """Start a statement; return how other calls fetch its rows."""
        order = self.parallel.order(callers.of(context)) if request.given is None else None
        reading = FlightReading(self._services, replace(request, offer=order))
        query_id = self._bridge.run_work(self._begun(reading), context)
        if order is not None and reading.offered is not None:
            return self.parallel.info(descriptor, reading.schema, query_id, reading.offered, order)
        offered = bound.OFFERED if reading.is_whole else b""
        return info_of(reading.schema, descriptor, ticket(query_id), reading.row_count, offered)

    def part(self, context: flight.ServerCallContext, ticket: bytes) -> flight.FlightDataStream:
        """Stream a part of an answer that an executor offers."""
        caller = callers.of(context)
        part_ticket = self.parallel.opened(ticket, caller)
        ending = ExitStack()
        caller.at_end(lambda: self._bridge.post(ending.close))
        stream = self._bridge.run_work(self._taken(part_ticket, ending), context)

        def rows() -> Iterator[pa.Table]:
            with statuses.answered(caller.span):
                while (batch := self._bridge.run_work(_next(stream), context)) is not None:
                    yield from messages.cut(batch, stream.schema, self._services.max_message_bytes)

        return flight.GeneratorStream(stream.schema, rows())

    def rows(
        self,
        context: flight.ServerCallContext,
        request: QueryRequest,
        query_id: QueryId | None = None,
    ) -> flight.FlightDataStream:
        """Stream the answer that waits under an id; without one the statement is started."""
        caller = callers.of(context)
        if query_id is not None:
            whole = self._waiting.take_whole(query_id, caller.principal.id)
            if whole is not None:
                self._bridge.post(partial(self._waiting.tidy, query_id))
                return self._whole(caller, whole)
        ending = ExitStack()
        # Whatever the coroutine has begun by the end of the call is ended, on its own loop; its
        # result may never get here, because the client can go away in that very moment.
        caller.at_end(lambda: self._bridge.post(ending.close))
        reading = self._bridge.run_work(self._found(caller, request, query_id, ending), context)
        if reading.is_whole:
            return self._whole(caller, reading)
        return flight.GeneratorStream(reading.schema, self._stream(context, reading))

    def _whole(self, caller: Caller, reading: FlightReading) -> flight.FlightDataStream:
        """Stream rows that are here, without a word to the event loop but what it has to note."""
        batches = reading.take_whole()
        self._bridge.post(partial(reading.count, batches))
        most_bytes = self._services.max_message_bytes

        def rows() -> Iterator[pa.Table]:
            with statuses.answered(caller.span):
                for batch in batches:
                    yield from messages.cut(batch, reading.schema, most_bytes)

        return flight.GeneratorStream(reading.schema, rows())

    async def collected(self, request: QueryRequest) -> pa.Table:
        """Return all rows of a statement that has few."""
        reading = FlightReading(self._services, request)
        try:
            await reading.open()
            batches: list[pa.RecordBatch] = []
            while taken := await reading.read_batches():
                batches += taken
            return pa.Table.from_batches(
                [batch.cast(reading.schema) for batch in batches], reading.schema
            )
        finally:
            reading.close(_GONE)

    async def begun_schema(self, request: QueryRequest) -> pa.Schema:
        """Start a statement, and return the columns of its answer."""
        reading = FlightReading(self._services, request)
        try:
            await reading.open()
            return reading.schema
        finally:
            reading.close()

    async def parameters(self, request: QueryRequest) -> Mapping[str, pa.DataType]:
        """Return the types of a statement's parameters; null where none can be inferred."""
        return await self._services.queries.parameters(request)

    async def sql_of(self, request: QueryRequest, plan: bytes) -> str:
        """Return a Substrait plan as SQL; the text of the request only names the plan."""
        return await self._services.queries.sql_of(request, plan)

    async def _begun(self, reading: FlightReading) -> QueryId:
        query_id = await self._waiting.open(reading)
        if reading.offered is not None:
            self.parallel.watch(reading)
        return query_id

    async def _taken(self, ticket: PartTicket, ending: ExitStack) -> BatchStream:
        stream = await self.parallel.stream(ticket)
        ending.callback(self.parallel.let_go, stream)
        return stream

    async def _found(
        self, caller: Caller, request: QueryRequest, query_id: QueryId | None, ending: ExitStack
    ) -> FlightReading:
        reading = None
        if query_id is not None:
            reading = self._waiting.take_reading(query_id, caller.principal.id)
        if reading is not None:
            ending.callback(reading.close, _GONE)
            return reading
        reading = FlightReading(self._services, request)
        ending.callback(reading.close, _GONE)
        await reading.open()
        if writing.begins_with_write(request.sql):
            # Drivers close a cursor as soon as they have the columns, which must not end a write.
            await reading.settle()
        return reading

    def _stream(
        self, context: flight.ServerCallContext, reading: FlightReading
    ) -> Iterator[pa.Table]:
        """Pull batch by batch: gRPC asks for the next once it has taken the last."""
        most_bytes = self._services.max_message_bytes
        with statuses.answered(callers.of(context).span):
            while batches := self._bridge.run_work(reading.read_batches(), context):
                for batch in batches:
                    yield from messages.cut(batch, reading.schema, most_bytes)
                if reading.is_whole:
                    return


async def _next(stream: BatchStream) -> pa.RecordBatch | None:
    return await anext(aiter(stream), None)


def info_of(
    columns: pa.Schema | None,
    descriptor: flight.FlightDescriptor,
    ticket: bytes,
    row_count: int = -1,
    metadata: bytes = b"",
) -> flight.FlightInfo:
    """Describe an answer that this server sends by itself."""
    # No location means "from the server you are talking to", which holds behind any proxy.
    endpoint = flight.FlightEndpoint(ticket, [])
    return flight.FlightInfo(columns, descriptor, [endpoint], row_count, -1, app_metadata=metadata)
