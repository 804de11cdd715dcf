"""Runs statements: over Flight, or else over HTTP, and again where that is safe."""

import json
import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from caraway.errors import ApiError, BrokenResponseError, InvalidEndpointError, UnreachableError
from caraway.requests import arguments, retries
from caraway.requests.arguments import Parameters
from caraway.requests.transport import ApiRequest, Transport
from caraway.rows.readers import RecordReader, opened
from caraway_core.concurrency.clocks import Sleep
from caraway_core.errors import CarawayError, ParametersError
from caraway_core.sqltext import writing

if TYPE_CHECKING:
    from caraway.flight.connections import FlightTransport

# UNIMPLEMENTED, and an UNAVAILABLE for which HTTP has the exact status and Retry-After.
_OTHER_WAY = frozenset({501, 503})


class StatementRunner:
    """Runs statements. One without `transport` has Flight only, one without `flight` HTTP only."""

    def __init__(
        self,
        transport: Transport | None,
        flight: "Callable[[], FlightTransport] | None",
        sleep: Sleep = time.sleep,
        *,
        allows_fallback: bool = True,
        max_retries: int = 3,
    ) -> None:
        self._transport = transport
        self._flight = flight
        self._sleep = sleep
        self._allows_fallback = allows_fallback and transport is not None
        self.max_retries = max_retries

    def open(
        self, sql: str, parameters: Parameters | None = None, timeout_s: float | None = None
    ) -> RecordReader:
        """Run a statement until its first rows arrive.

        Until then, a statement that only reads is tried again after errors that pass. One that
        may write is tried again only if the server cannot have begun it.
        """
        arguments.statement(sql, parameters)
        is_read = not writing.may_change(sql)
        attempt = 0
        while True:
            try:
                return self._attempt(sql, parameters, timeout_s, is_read)
            except _NotAgain as final:
                raise final.error from final.error.__cause__
            except (UnreachableError, ApiError, BrokenResponseError) as error:
                policy = retries.statements(self.max_retries, is_read=is_read)
                delay_s = policy.delay_s(error, attempt)
                if delay_s is None:
                    raise
                self._sleep(delay_s)
            attempt += 1

    def _attempt(
        self, sql: str, parameters: Parameters | None, timeout_s: float | None, is_read: bool
    ) -> RecordReader:
        if self._flight is not None:
            pump = self._flight().open(sql, timeout_s, parameters)
            try:
                return opened(pump)
            except (UnreachableError, ApiError, BrokenResponseError) as error:
                is_safe = is_read or not pump.has_started
                if not is_safe:
                    raise _NotAgain(error) from error
                if not self._allows_fallback or not _may_go_by_http(error):
                    raise
        return self._over_http(sql, parameters, timeout_s)

    def _over_http(
        self, sql: str, parameters: Parameters | None, timeout_s: float | None
    ) -> RecordReader:
        from caraway.requests.arrow_bodies import MEDIA_TYPE, HttpBatches

        if self._transport is None:
            raise InvalidEndpointError("this needs HTTP: set http_url")
        request = statement_request(sql, parameters, MEDIA_TYPE, timeout_s)
        return opened(HttpBatches(self._transport.chunks(request, retries.once())))


class _NotAgain(Exception):
    """A failure after which a statement may have been carried out."""

    def __init__(self, error: CarawayError) -> None:
        super().__init__(error.message)
        self.error = error


def statement_request(
    sql: str,
    parameters: Parameters | None,
    accept: str,
    timeout_s: float | None = None,
    extra: Mapping[str, str] | None = None,
) -> ApiRequest:
    """Return the request for a statement."""
    arguments.statement(sql, parameters)
    body, content_type = encode_statement(sql, parameters)
    return ApiRequest(
        "POST",
        "/v1/sql",
        accept=accept,
        body=body,
        content_type=content_type,
        timeout_s=timeout_s,
        extra=extra or {},
    )


def encode_statement(sql: str, parameters: Parameters | None) -> tuple[bytes, str]:
    """Return the body of a statement and its content type.

    Raises:
        ParametersError: a value has no form in JSON.
    """
    if not parameters:
        return sql.encode(), "text/plain"
    given = dict(parameters) if isinstance(parameters, Mapping) else list(parameters)
    return encode_json({"sql": sql, "parameters": given}), "application/json"


def encode_json(document: Mapping[str, object]) -> bytes:
    """Encode a document whose values may be dates and decimals.

    Raises:
        ParametersError: a value has no form in JSON.
    """
    try:
        return json.dumps(document, default=_text, allow_nan=False).encode()
    except ValueError as exc:
        raise ParametersError(f"{math.nan}, infinities and cycles cannot be sent: {exc}") from exc
    except TypeError as exc:
        raise ParametersError(f"a parameter cannot be sent: {exc}") from exc
    except RecursionError as exc:
        raise ParametersError("a parameter cannot be sent: it is nested too deep") from exc


# Any: whatever json does not know.
def _text(given: object) -> Any:
    if isinstance(given, bytes | bytearray | memoryview):
        raise ParametersError(
            "bytes cannot be sent as a parameter; send them as text: decode(:value, 'hex')"
        )
    if hasattr(given, "tolist"):  # numpy's numbers and arrays
        return given.tolist()
    # The server casts these strings to the type it needs.
    return str(given)


def _may_go_by_http(error: CarawayError) -> bool:
    return not isinstance(error, ApiError) or error.status in _OTHER_WAY
