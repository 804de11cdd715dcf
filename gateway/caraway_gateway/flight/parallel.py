"""Answers that clients read at the executors: who may, where, and with which tickets.

The process that began such a statement watches it until its rows are read.
"""

import math
import time

import pyarrow as pa
from pyarrow import flight

from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError, NotFoundError, QueryForbiddenError
from caraway_core.ids import QueryId
from caraway_core.protocols.dispatch import BatchStream, OfferedAnswer
from caraway_core.protocols.offers import OfferOrder
from caraway_core.security import tickets
from caraway_core.security.tickets import PartTicket
from caraway_gateway.flight.callers import Caller
from caraway_gateway.flight.readings import FlightReading
from caraway_gateway.services import Services
from caraway_serving.tls import ServerTls

HERE = "arrow-flight-reuse-connection://?"
"""The location of a client that does not reach the executor: the connection that it has."""


class ParallelReads:
    """Offers of this process to clients. Its methods run on the event loop, or do not wait."""

    def __init__(self, services: Services, tls: ServerTls | None) -> None:
        operating = services.operating
        self._services = services
        self._token = operating.token if operating is not None else ""
        self._is_secure = tls is not None
        self._asks_certificates = tls is not None and tls.client_ca is not None
        self._watching = tasks.Tasks()

    def order(self, caller: Caller) -> OfferOrder | None:
        """Return how an answer may be offered to a caller; None: its rows pass this process."""
        settings = self._services.manifest.current.runtime.flight.parallel_reads
        if settings is None or not settings.enabled:
            return None
        if not self._token or not caller.reads_endpoints:
            return None
        return OfferOrder(
            caller.principal.id,
            caller.credential if self._services.keyring is not None else "",
            settings.ticket_ttl_s,
            self._is_secure,
            self._asks_certificates,
        )

    def info(
        self,
        descriptor: flight.FlightDescriptor,
        schema: pa.Schema,
        query_id: QueryId,
        answer: OfferedAnswer,
        order: OfferOrder,
    ) -> flight.FlightInfo:
        """Word an answer as endpoints."""
        expires_s = math.ceil(time.time() + order.wait_s)
        endpoints = []
        for part in answer.offered:
            ticket = PartTicket(
                query_id, part.offer_id, part.executor_id, order.principal, expires_s
            )
            locations = [part.location, HERE]
            endpoints.append(flight.FlightEndpoint(ticket.sealed(self._token), locations))
        return flight.FlightInfo(schema, descriptor, endpoints, -1, -1, ordered=answer.is_ordered)

    def watch(self, reading: FlightReading) -> None:
        """Keep a statement until all its parts are read."""
        self._watching.spawn(_watched(reading), "watch the parts of an answer")

    def opened(self, ticket: bytes, caller: Caller) -> PartTicket:
        """Return what a ticket says.

        Raises:
            CarawayError: it is not valid, has expired, or belongs to somebody else.
        """
        if not self._token:
            raise NotFoundError("there is no cluster here to which this ticket could belong")
        part_ticket = tickets.opened(ticket, self._token)
        if part_ticket.principal != caller.principal.id:
            raise QueryForbiddenError("the ticket belongs to another key; run the query again")
        return part_ticket

    async def stream(self, found: PartTicket) -> BatchStream:
        """Read a part here, for a client that did not read it at the executor."""
        operating = self._services.operating
        if operating is None or operating.take is None:
            raise NotFoundError("the rows of this ticket cannot be read here")
        return await operating.take(found.executor_id, found.offer_id)

    def let_go(self, stream: BatchStream) -> None:
        """Close a part that is read here, soon."""
        self._watching.spawn(stream.aclose(), "close a part of an answer")

    async def aclose(self) -> None:
        """End the statements whose parts are not read yet."""
        await self._watching.aclose()

    def query_of(self, ticket: bytes, caller: Caller) -> QueryId | None:
        """Return the statement that a ticket belongs to; None if it is another kind of ticket."""
        if not tickets.is_part(ticket):
            return None
        try:
            return self.opened(ticket, caller).query_id
        except NotFoundError:
            return None


async def _watched(reading: FlightReading) -> None:
    try:
        while await reading.read_batches():
            pass
    except CarawayError:
        return  # It is in the history, and readers of its parts were told.
    finally:
        reading.close()
