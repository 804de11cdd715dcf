"""Maps errors to HTTP responses: one status per kind, in the format of the route family."""

from collections.abc import Callable, Mapping

from starlette.responses import JSONResponse, PlainTextResponse, Response

from caraway_core.errors import CarawayError, outcomes
from caraway_core.errors.outcomes import FailureKind

STATUS: Mapping[FailureKind, int] = {
    FailureKind.INVALID: 400,
    FailureKind.FORBIDDEN: 403,
    FailureKind.NOT_FOUND: 404,
    FailureKind.CONFLICT: 422,
    FailureKind.TIMED_OUT: 504,
    FailureKind.CANCELLED: 499,
    FailureKind.OVERLOADED: 429,
    FailureKind.UNAVAILABLE: 503,
    FailureKind.FULL: 507,
    FailureKind.INTERNAL: 500,
}
CLIENT_GONE = Response(status_code=499)
"""No client receives this status; it is only counted in the metrics."""


class RefusedRequestError(Exception):
    """A request that is rejected before any work starts; `status` is the HTTP status."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


Failure = CarawayError | RefusedRequestError
Answer = Callable[[Failure], Response]


def status(exc: Failure) -> int:
    """Return the HTTP status of an error."""
    return exc.status if isinstance(exc, RefusedRequestError) else STATUS[outcomes.of(exc).kind]


def words(exc: Failure) -> str:
    """Return the message of an error."""
    return exc.message if isinstance(exc, RefusedRequestError) else outcomes.words(exc)


def headers(exc: Failure) -> dict[str, str]:
    """Return the response headers of an error."""
    if isinstance(exc, RefusedRequestError):
        return exc.headers
    wait_s = outcomes.retry_after_s(exc)
    return {} if wait_s is None else {"retry-after": str(wait_s)}


def as_text(exc: Failure) -> Response:
    """Return a plain text response, as the SQL routes do."""
    return PlainTextResponse(words(exc), status(exc), headers(exc))


def as_error(exc: Failure, **fields: str) -> Response:
    """Return a response `{"error": ...}` with optional further fields."""
    return JSONResponse({"error": words(exc), **fields}, status(exc), headers(exc))


def as_message(exc: Failure) -> Response:
    """Return a response `{"message": ...}`, as the dataset routes do."""
    return JSONResponse({"message": words(exc)}, status(exc), headers(exc))
