"""Statements of Flight SQL on their way through the query service."""

from collections.abc import Coroutine, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import flight

from caraway_core.errors import InvalidQueryError, QueryCancelledError
from caraway_core.ids import QueryId
from caraway_core.sqltext import writing
from caraway_scheduler.flight import callers, messages, statuses
from caraway_scheduler.flight.bridge import Bridge
from caraway_scheduler.flight.callers import Caller
from caraway_scheduler.flight.readings import FlightReading, WaitingRoom
from caraway_scheduler.flight.sql.binding import Values
from caraway_scheduler.queries.service import QueryRequest
from caraway_scheduler.services import Services

COUNTED = pa.schema([pa.field("count", pa.uint64(), nullable=False)])
UNKNOWN_COUNT = -1
_GONE = QueryCancelledError("the client went away")
_T = TypeVar("_T")
_NO_VALUES: Values = {}


class Statements:
    """Runs statements for the threads of calls."""

    def __init__(self, services: Services, bridge: Bridge, waiting: WaitingRoom) -> None:
        self._services = services
        self._bridge = bridge
        self._waiting = waiting

    def wait(self, work: Coroutine[Any, Any, _T], context: flight.ServerCallContext) -> _T:
        """Wait for the event loop as long as the client does."""
        return self._bridge.run(work, context)

    def begun(
        self, context: flight.ServerCallContext, request: QueryRequest
    ) -> tuple[FlightReading, QueryId]:
        """Start a statement whose rows are fetched by another call."""
        reading = FlightReading(self._services, request)
        return reading, self._bridge.run(self._waiting.open(reading), context)

    def rows(
        self,
        context: flight.ServerCallContext,
        request: QueryRequest,
        query_id: QueryId | None = None,
    ) -> flight.FlightDataStream:
        """Stream the answer that waits under an id; without one the statement is started."""
        caller = callers.of(context)
        ending = ExitStack()
        # As the endpoint itself does: whatever was begun is ended on its own loop.
        caller.at_end(lambda: self._bridge.post(ending.close))
        reading = self._bridge.run(self._found(caller, request, query_id, ending), context)
        return flight.GeneratorStream(reading.schema, self._stream(context, reading))

    async def schema(self, request: QueryRequest) -> pa.Schema:
        """Return the columns of the answer to a statement, and read as little as possible."""
        if is_write(request):
            return COUNTED
        with_no_rows = f"SELECT * FROM (\n{request.sql}\n) AS statement LIMIT 0"
        try:
            return await self._schema(replace(request, sql=with_no_rows))
        except InvalidQueryError:
            # No subquery can be made of SHOW, of EXPLAIN, or of two columns with one name.
            return await self._schema(request)

    async def count(self, request: QueryRequest) -> int:
        """Run a statement to its end, and return how many rows it has changed."""
        rows = await self.collected(request)
        if is_write(request) and rows.num_rows == 1 and rows.schema.names == COUNTED.names:
            return int(rows.column(0)[0].as_py())
        return UNKNOWN_COUNT

    async def collected(self, request: QueryRequest) -> pa.Table:
        """Return all rows of a statement that has few."""
        reading = FlightReading(self._services, request)
        try:
            await reading.open()
            batches: list[pa.RecordBatch] = []
            while taken := await reading.take():
                batches += taken
            return pa.Table.from_batches(
                [batch.cast(reading.schema) for batch in batches], reading.schema
            )
        finally:
            reading.close(_GONE)

    async def _schema(self, request: QueryRequest) -> pa.Schema:
        reading = FlightReading(self._services, request)
        try:
            await reading.open()
            return reading.schema
        finally:
            reading.close()

    async def _found(
        self, caller: Caller, request: QueryRequest, query_id: QueryId | None, ending: ExitStack
    ) -> FlightReading:
        reading = None
        if query_id is not None:
            reading = self._waiting.take(query_id, caller.principal.id)
        if reading is not None:
            ending.callback(reading.close, _GONE)
            return reading
        reading = FlightReading(self._services, request)
        ending.callback(reading.close, _GONE)
        await reading.open()
        return reading

    def _stream(
        self, context: flight.ServerCallContext, reading: FlightReading
    ) -> Iterator[pa.Table]:
        most_bytes = self._services.max_message_bytes
        with statuses.answered(callers.of(context).span):
            while batches := self._bridge.run(reading.take(), context):
                for batch in batches:
                    yield from messages.cut(batch, reading.schema, most_bytes)
                if reading.is_whole:
                    return


def request_of(caller: Caller, sql: str, values: Values = _NO_VALUES) -> QueryRequest:
    """Ask for a statement in the name of a caller."""
    return replace(caller.request(sql), protocol="flightsql", parameters=dict(values))


def is_write(request: QueryRequest) -> bool:
    """Tell if a statement is one that changes a table."""
    return writing.begins_with_write(request.sql)


__all__ = ["COUNTED", "UNKNOWN_COUNT", "Statements", "is_write", "request_of"]
