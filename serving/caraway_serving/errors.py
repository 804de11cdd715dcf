"""Turns errors into HTTP answers: one status for each kind, in the body of the route family."""

from collections.abc import Callable, Mapping

from starlette.responses import JSONResponse, PlainTextResponse, Response

from caraway_core import outcomes
from caraway_core.errors import CarawayError
from caraway_core.outcomes import Kind

STATUS: Mapping[Kind, int] = {
    Kind.INVALID: 400,
    Kind.FORBIDDEN: 403,
    Kind.NOT_FOUND: 404,
    Kind.CONFLICT: 422,
    Kind.TIMED_OUT: 504,
    Kind.CANCELLED: 499,
    Kind.OVERLOADED: 429,
    Kind.UNAVAILABLE: 503,
    Kind.FULL: 507,
    Kind.INTERNAL: 500,
}
CLIENT_GONE = Response(status_code=499)
"""Nobody reads it; the metrics count it."""


class RefusedError(Exception):
    """A request that is refused before it becomes work; `status` is the HTTP answer."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


Failure = CarawayError | RefusedError
Answer = Callable[[Failure], Response]


def status(exc: Failure) -> int:
    return exc.status if isinstance(exc, RefusedError) else STATUS[outcomes.of(exc).kind]


def words(exc: Failure) -> str:
    return exc.message if isinstance(exc, RefusedError) else outcomes.words(exc)


def headers(exc: Failure) -> dict[str, str]:
    if isinstance(exc, RefusedError):
        return exc.headers
    wait_s = outcomes.retry_after_s(exc)
    return {} if wait_s is None else {"retry-after": str(wait_s)}


def as_text(exc: Failure) -> Response:
    """Answer in plain text, as the SQL routes do."""
    return PlainTextResponse(words(exc), status(exc), headers(exc))


def as_error(exc: Failure, **fields: str) -> Response:
    """Answer with `{"error": ...}`, and further fields if there are any."""
    return JSONResponse({"error": words(exc), **fields}, status(exc), headers(exc))


def as_message(exc: Failure) -> Response:
    """Answer with `{"message": ...}`, as the routes of one dataset do."""
    return JSONResponse({"message": words(exc)}, status(exc), headers(exc))
