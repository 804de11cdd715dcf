"""Readers of Flight streams: the feeds of pumps, for one call each."""

import contextlib
from abc import abstractmethod
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import flight

from caraway.errors import ApiError, BrokenResponseError, UnreachableError
from caraway.flight import bound_rows, prepared
from caraway.flight.endpoints import EndpointReader, OrderedEndpoints, ParallelEndpoints
from caraway.flight.pumps import BatchPump, PumpSource
from caraway.requests.addresses import FlightAddress


class FlightConnections(Protocol):
    """The connections that feeds read from: those of a `FlightTransport`."""

    @property
    def address(self) -> FlightAddress: ...

    @property
    def thread_name(self) -> str: ...

    def connect(self, address: FlightAddress) -> Any: ...

    def options(self, timeout_s: float | None) -> Any: ...

    def choose(self, locations: list[Any]) -> list[FlightAddress]: ...

    def mapped_errors(self, at: FlightAddress | None = None) -> AbstractContextManager[None]: ...


_OFFERED = b"caraway-bound-tickets"
"""Metadata of an answer with few rows: the server takes tickets with parameters."""


class EndpointFeed(PumpSource):
    """One endpoint of an answer."""

    def __init__(
        self, transport: FlightConnections, endpoint: Any, timeout_s: float | None
    ) -> None:
        self._transport = transport
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._at = transport.address
        self._reader: Any = None

    def read_schema(self) -> pa.Schema:
        """Ask for the rows at the first location that can be reached."""
        *others, last = self._transport.choose(self._endpoint.locations)
        for address in others:
            with contextlib.suppress(UnreachableError):
                return self._begin_at(address)
        return self._begin_at(last)

    def read_batch(self) -> pa.RecordBatch | None:
        with self._transport.mapped_errors(self._at):
            while self._reader is not None:
                try:
                    batch = self._reader.read_chunk().data
                except StopIteration:
                    self._reader = None
                    break
                if batch is not None:
                    return batch
        return None

    def cancel(self) -> None:
        reader = self._reader
        if reader is not None:
            reader.cancel()

    def _begin_at(self, address: FlightAddress) -> pa.Schema:
        self._at = address
        with self._transport.mapped_errors(address):
            client = self._transport.connect(address)
            options = self._transport.options(self._timeout_s)
            self._reader = client.do_get(self._endpoint.ticket, options)
            return self._reader.schema


class AnswerFeed(PumpSource):
    """All endpoints of an answer."""

    def __init__(self, transport: FlightConnections, timeout_s: float | None) -> None:
        self._transport = transport
        self._timeout_s = timeout_s
        self._batches: EndpointReader | None = None
        self._promised = -1
        self._rows = 0

    @abstractmethod
    def ask(self) -> Any:
        """Return the FlightInfo of the answer."""

    def read_schema(self) -> pa.Schema:
        info = self.ask()
        self._promised = info.total_records
        if not info.endpoints:
            return info.schema
        self.has_started = True
        if len(info.endpoints) > 1 and not info.ordered:
            self._batches = ParallelEndpoints(
                [partial(self._begun, endpoint) for endpoint in info.endpoints]
            )
            return info.schema
        if len(info.endpoints) > 1:
            self._batches = endpoints = OrderedEndpoints(
                [partial(self._pump, endpoint) for endpoint in info.endpoints]
            )
            return endpoints.read_schema()
        # No other stream to read, so this thread reads.
        self._batches = only = self._feed(info.endpoints[0])
        return only.read_schema()

    def read_batch(self) -> pa.RecordBatch | None:
        batch = self._batches.read_batch() if self._batches is not None else None
        if batch is not None:
            self._rows += batch.num_rows
            return batch
        if self._rows < self._promised:
            raise BrokenResponseError(
                f"the server announced {self._promised} rows and sent {self._rows}"
            )
        return None

    def cancel(self) -> None:
        batches = self._batches
        if batches is not None:
            batches.cancel()

    def _feed(self, endpoint: Any) -> EndpointFeed:
        return EndpointFeed(self._transport, endpoint, self._timeout_s)

    def _begun(self, endpoint: Any) -> EndpointFeed:
        feed = self._feed(endpoint)
        feed.read_schema()
        return feed

    def _pump(self, endpoint: Any) -> BatchPump:
        return BatchPump(self._feed(endpoint), self._transport.thread_name)


class DescribedFeed(AnswerFeed):
    """The answer to a descriptor: the text of a statement, or the path of a finished query."""

    def __init__(
        self, transport: FlightConnections, descriptor: Any, timeout_s: float | None
    ) -> None:
        super().__init__(transport, timeout_s)
        self._descriptor = descriptor

    def ask(self) -> Any:
        with self._transport.mapped_errors():
            client = self._transport.connect(self._transport.address)
            options = self._transport.options(self._timeout_s)
            return client.get_flight_info(self._descriptor, options)


class PreparedFeed(AnswerFeed):
    """The answer to a statement with parameters, which are bound to a prepared statement."""

    def __init__(
        self,
        transport: FlightConnections,
        pool: prepared.PreparedPool,
        sql: str,
        row: pa.RecordBatch,
        timeout_s: float | None,
    ) -> None:
        super().__init__(transport, timeout_s)
        self._pool = pool
        self._sql = sql
        self._row = row
        self._used: prepared.PreparedHandle | None = None

    def ask(self) -> Any:
        while True:
            try:
                with self._transport.mapped_errors():
                    info = self._bound()
                    if info.app_metadata == _OFFERED:
                        self._pool.note_short(self._sql)
                    return info
            except ApiError as error:
                # The server restarted, or had the statement for too long.
                used = self._used
                if error.status != 404 or used is None or not used.is_reused:
                    raise

    def read_batch(self) -> pa.RecordBatch | None:
        batch = super().read_batch()
        if batch is None:
            self._give_back()
        return batch

    def cancel(self) -> None:
        super().cancel()
        used, self._used = self._used, None
        if used is not None:
            self._pool.abandon(used)

    def _bound(self) -> Any:
        client = self._transport.connect(self._transport.address)
        options = self._transport.options(self._timeout_s)
        self._used = self._pool.take_statement(client, options, self._sql)
        prepared.bind(client, options, self._used, self._row)
        return client.get_flight_info(self._used.descriptor, options)

    def _give_back(self) -> None:
        used, self._used = self._used, None
        if used is not None:
            client = self._transport.connect(self._transport.address)
            self._pool.give_back(client, self._transport.options(self._timeout_s), used)


def of_bound(
    transport: FlightConnections,
    pool: prepared.PreparedPool,
    sql: str,
    row: pa.RecordBatch,
    timeout_s: float | None,
) -> PumpSource:
    """Return the feed of a statement with parameters.

    One that had few rows is asked for by one call. Others may have several endpoints.
    """
    if not pool.is_short(sql):
        return PreparedFeed(transport, pool, sql, row, timeout_s)
    ticket = flight.FlightEndpoint(bound_rows.ticket(sql, row), [])
    return EndpointFeed(transport, ticket, timeout_s)


def of_text(transport: FlightConnections, sql: str, timeout_s: float | None) -> PumpSource:
    """Return the feed of a statement without parameters."""
    return DescribedFeed(transport, flight.FlightDescriptor.for_command(sql), timeout_s)


def of_query(transport: FlightConnections, query_id: str) -> PumpSource:
    """Return the feed of the stored rows of an asynchronous query."""
    return DescribedFeed(transport, flight.FlightDescriptor.for_path("queries", query_id), None)
