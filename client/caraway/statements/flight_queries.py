"""Asynchronous queries over Flight alone, as actions with JSON bodies."""

import json
import time
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

from caraway.errors import (
    ApiError,
    BrokenResponseError,
    InvalidEndpointError,
    UnreachableError,
)
from caraway.requests import parsing, retries
from caraway.requests.parsing import Row
from caraway.rows.formats import ResultFormat
from caraway.statements.queries import QueryHandle
from caraway.statements.statements import encode_json
from caraway_core.concurrency.clocks import SecondsClock, Sleep

if TYPE_CHECKING:
    from caraway.flight.connections import FlightTransport
    from caraway.rows.readers import RecordReader

_TIMEOUT_S = 30.0


class FlightQueries:
    """The actions of asynchronous queries. A list of queries and idempotency keys need HTTP."""

    def __init__(
        self,
        transport: "FlightTransport",
        max_retries: int,
        sleep: Sleep,
    ) -> None:
        self._transport = transport
        self._max_retries = max_retries
        self.sleep = sleep
        self.clock: SecondsClock = time.monotonic

    def submit(self, submission: Mapping[str, Any], idempotency_key: str = "") -> QueryHandle:
        """Submit a query. It is not tried again: without a key it might run twice.

        Raises:
            InvalidEndpointError: a key was given.
        """
        if idempotency_key:
            raise InvalidEndpointError("idempotency keys need HTTP: set http_url")
        answer = self._transport.act("SubmitAsyncQuery", encode_json(submission), _TIMEOUT_S)
        query_id = parsing.parse_object(answer.decode("utf-8", "replace")).get("query_id")
        if not isinstance(query_id, str) or not query_id:
            raise BrokenResponseError(f"expected a query_id, but the server sent: {answer!r:.200}")
        return QueryHandle(query_id, self)

    def list(self, status: str, limit: int) -> list[Row]:
        """Refuse: there is no such action.

        Raises:
            InvalidEndpointError: always.
        """
        raise InvalidEndpointError("a list of queries needs HTTP: set http_url")

    def status_of(self, query_id: str, wait: float) -> Row:
        """Return the status of a query at once: the action cannot wait."""
        return self._act("GetAsyncQueryStatus", query_id)

    def cancel(self, query_id: str) -> Row:
        """Cancel a query unless it has finished, and return its status."""
        return self._act("CancelAsyncQuery", query_id)

    def open_rows(self, query_id: str) -> "RecordReader":
        """Begin to read the rows of a finished query."""
        from caraway.rows.readers import opened

        return opened(self._transport.open_query(query_id))

    def chunks(self, query_id: str, format: ResultFormat) -> Generator[bytes, None, None]:
        """Refuse: results as text are made by the routes of HTTP.

        Raises:
            InvalidEndpointError: always.
        """
        raise InvalidEndpointError(f"results as {format.value} need HTTP: set http_url")

    def _act(self, name: str, query_id: str) -> Row:
        body = json.dumps({"query_id": query_id}).encode()
        policy = retries.patient(self._max_retries)
        attempt = 0
        while True:
            try:
                answer = self._transport.act(name, body, _TIMEOUT_S)
                return parsing.parse_object(answer.decode("utf-8", "replace"))
            except (UnreachableError, ApiError, BrokenResponseError) as error:
                delay_s = policy.delay_s(error, attempt)
                if delay_s is None:
                    raise
                self.sleep(delay_s)
            attempt += 1
