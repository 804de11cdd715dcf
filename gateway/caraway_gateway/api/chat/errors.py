"""Errors of chats in the shape that clients of the OpenAI wire read."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse, Response

from caraway_ai.chat.checking import RequestFieldError
from caraway_core.errors import CarawayError, ModelError, NotFoundError
from caraway_serving import errors
from caraway_serving.errors import RefusedRequestError

_STATUS: Mapping[str, int] = {
    "auth": 401,
    "quota": 402,
    "rate_limit": 429,
    "timeout": 504,
    "unavailable": 503,
    "invalid": 400,
    "context_length": 400,
}
_CODES: Mapping[str, str] = {
    "auth": "invalid_api_key",
    "quota": "insufficient_quota",
    "rate_limit": "rate_limit_exceeded",
    "context_length": "context_length_exceeded",
}
_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: "invalid_request_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    429: "rate_limit_error",
}


def status(exc: errors.Failure) -> int:
    """Return the HTTP status of a failed call of a model."""
    if isinstance(exc, ModelError) and errors.status(exc) != 400:
        return _STATUS.get(exc.type, 500)
    return errors.status(exc)


def document(exc: errors.Failure) -> dict[str, Any]:
    """Return the object `error` of a failure."""
    code: str | None = None
    if isinstance(exc, ModelError):
        code = _CODES.get(exc.type, exc.code)
    return {
        "message": errors.words(exc),
        "type": _TYPES.get(status(exc), "server_error"),
        "param": exc.param or None if isinstance(exc, RequestFieldError) else None,
        "code": code,
    }


def response(exc: errors.Failure) -> Response:
    """Return the response for a failure before anything was sent."""
    if isinstance(exc, NotFoundError):
        return Response(status_code=404)  # The specification has no body here.
    headers = errors.headers(exc)
    if (found := status(exc)) == 500:
        # As the specification has it. A client that tries again would get the same.
        return JSONResponse(
            {"error": errors.words(exc)}, 500, {**headers, "x-should-retry": "false"}
        )
    return JSONResponse({"error": document(exc)}, found, headers)


KNOWN = (CarawayError, RefusedRequestError)
"""Errors with a message for clients; all others are internal errors."""
