"""The Flight endpoint of an executor: clients fetch their parts of answers here.

It answers `DoGet` of tickets that schedulers have signed, and nothing else. Imported only where
it is asked for, because gRPC is slow to load.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import NoReturn

import pyarrow as pa
from pyarrow import flight

from caraway_core.errors import CarawayError
from caraway_core.ids import ExecutorId
from caraway_core.protocols.offers import FlightPlace, digest
from caraway_core.security import tickets
from caraway_core.settings import Address
from caraway_executor.answers.offers import OfferedRows, Offers
from caraway_executor.part_options import PartServing
from caraway_serving import listeners, spans
from caraway_serving.flight import connections, credentials, messages, statuses
from caraway_serving.flight.bridge import Bridge
from caraway_serving.flight.credentials import Headers
from caraway_serving.tls import ServerTls

_FLAG = "--flight"
_VISIT = "visit"


class PartServer:
    """The endpoint, from bind to stop. `loop` is that of the worker."""

    def __init__(
        self,
        serving: PartServing,
        executor_id: ExecutorId,
        offers: Offers,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._bridge = Bridge(loop)
        address = serving.wanted.listen
        # gRPC does not say why it cannot listen; a socket of our own does.
        listeners.bind(address, _FLAG).close()
        tls = serving.tls()
        scheme = "grpc+tls" if tls else "grpc+tcp"
        try:
            self._server = _Server(
                f"{scheme}://{address}",
                tls,
                _Parts(offers, self._bridge, serving.token(), executor_id),
            )
        except pa.ArrowException as exc:
            raise CarawayError(
                f"cannot listen on {address}: {exc}; choose another address with {_FLAG} HOST:PORT"
            ) from exc
        self._server.parts.port = self._server.port
        reached = serving.reached_at
        reached = Address(reached.host, reached.port or self._server.port)
        self.place = FlightPlace(
            f"{scheme}://{reached}",
            asks_certificates=bool(tls and tls.client_ca),
        )

    def stop(self) -> None:
        """Cut off all clients; blocks for a moment."""
        self._bridge.close()
        connections.cut(self._server.port)
        self._server.shutdown()


class _Parts:
    """Reads offers in the threads of calls."""

    def __init__(self, offers: Offers, bridge: Bridge, token: str, executor_id: ExecutorId) -> None:
        self._offers = offers
        self._bridge = bridge
        self._token = token
        self._executor_id = executor_id
        self.port = 0

    def stream(self, context: flight.ServerCallContext, ticket: bytes) -> flight.FlightDataStream:
        """Send the rows that a ticket stands for."""
        visit = context.get_middleware(_VISIT)
        assert isinstance(visit, _Visit)
        with statuses.answered(visit.span):
            part_ticket = tickets.opened(ticket, self._token)
            if part_ticket.executor_id != self._executor_id:
                raise statuses.NotFound(
                    f"the ticket is for executor '{part_ticket.executor_id}', and this is "
                    f"'{self._executor_id}'; read each endpoint at its own locations"
                )
            if not visit.credential and not self._offers.is_public(part_ticket.offer_id):
                raise statuses.Unauthenticated(
                    "send the key or session id with which the query was made, as metadata "
                    "`authorization: Bearer KEY` or `x-api-key: KEY`"
                )
            peer = context.peer()
            rows = self._bridge.run_work(self._taken(part_ticket.offer_id, visit, peer), context)
            return flight.GeneratorStream(rows.schema, self._batches(context, rows, visit))

    async def _taken(self, offer_id: str, visit: "_Visit", peer: str) -> OfferedRows:
        rows = self._offers.take_offer(offer_id, visit.credential)
        # The client can go away at any moment, also in this one.
        visit.ended = lambda: self._bridge.post(lambda: self._offers.left(rows))
        rows.on_stalled = lambda: connections.cut(self.port, peer)
        return rows

    def _batches(
        self, context: flight.ServerCallContext, rows: OfferedRows, visit: "_Visit"
    ) -> Iterator[pa.Table]:
        """Pull batch by batch: gRPC asks for the next once it has taken the last."""
        with statuses.answered(visit.span):
            while (batch := self._bridge.run_work(rows.read_batch(), context)) is not None:
                yield from messages.cut(rows.fitted(batch), rows.schema)
            self._bridge.run_work(self._offers.end(rows.offer.offer_id), context)


class _Server(flight.FlightServerBase):  # type: ignore[misc] # pyarrow has no types
    """Answers in gRPC's threads. It listens as soon as it is made."""

    def __init__(self, location: str, tls: ServerTls | None, parts: _Parts) -> None:
        super().__init__(
            location,
            tls_certificates=[(tls.certificate, tls.key)] if tls else None,
            verify_client=bool(tls and tls.client_ca),
            root_certificates=tls.client_ca if tls else None,
            middleware={_VISIT: _Visits()},
        )
        self.parts = parts

    def do_get(
        self, context: flight.ServerCallContext, ticket: flight.Ticket
    ) -> flight.FlightDataStream:
        return self.parts.stream(context, ticket.ticket)

    def get_flight_info(self, *_: object) -> NoReturn:
        _refuse()

    def get_schema(self, *_: object) -> NoReturn:
        _refuse()

    def list_flights(self, *_: object) -> NoReturn:
        _refuse()

    def do_put(self, *_: object) -> NoReturn:
        _refuse()

    def do_exchange(self, *_: object) -> NoReturn:
        _refuse()

    def do_action(self, *_: object) -> NoReturn:
        _refuse()

    def list_actions(self, *_: object) -> NoReturn:
        _refuse()


class _Visit(flight.ServerMiddleware):  # type: ignore[misc] # pyarrow has no types
    """One call: its credential, and what follows its end."""

    def __init__(self, headers: Headers) -> None:
        self.credential = digest(credentials.credential(headers) or "")
        self.span = spans.start(credentials.text(headers, "traceparent"))
        self.ended: Callable[[], None] = lambda: None

    def call_completed(self, exception: Exception | None) -> None:
        self.ended()


class _Visits(flight.ServerMiddlewareFactory):  # type: ignore[misc] # pyarrow has no types
    def start_call(self, info: flight.CallInfo, headers: Headers) -> _Visit:
        return _Visit(headers)


def _refuse() -> NoReturn:
    raise statuses.Unimplemented(
        "executors only send the rows of tickets; ask a scheduler for everything else"
    )
