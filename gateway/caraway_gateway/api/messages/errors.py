"""Errors of messages in the shape that clients of Anthropic's wire read."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse, Response

from caraway_gateway.api.chat import errors as chat_errors
from caraway_serving import errors

_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
_OF_CHAT: Mapping[str, str] = {
    "insufficient_quota": "billing_error",
    "server_error": "api_error",
}


def document(message: str, status: int) -> dict[str, Any]:
    """Return the envelope of an error."""
    type_ = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": type_, "message": message}}


def in_stream(error: Mapping[str, Any]) -> dict[str, object]:
    """Return the envelope for the object `error` of a chat."""
    type_ = _OF_CHAT.get(error["type"], error["type"])
    return {"type": "error", "error": {"type": type_, "message": error["message"]}}


def envelope(exc: errors.Failure) -> Response:
    """Return the response for a failure before anything was sent."""
    status = chat_errors.status(exc)
    headers = errors.headers(exc)
    if status == 500:
        # A client that tries again would get the same.
        headers = {**headers, "x-should-retry": "false"}
    return JSONResponse(document(errors.words(exc), status), status, headers)
