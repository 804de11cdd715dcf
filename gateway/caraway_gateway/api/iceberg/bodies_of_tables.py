"""Requests of the Iceberg REST protocol that have a body and are for one table."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from caraway_core.errors import CarawayError, InvalidRequestError
from caraway_core.ids import TableName
from caraway_gateway.api import app_state
from caraway_gateway.api.iceberg import asking, errors, parameters
from caraway_serving import bodies, parsing
from caraway_serving import errors as failures
from caraway_serving.errors import RefusedRequestError

T = TypeVar("T")
Answer = dict[str, Any]
_WORDS = {
    403: "The statement may not be run.",
    408: "The body stopped arriving.",
    413: "The body is too large.",
    415: "The Content-Encoding is not supported.",
    429: "Too many scans are being planned.",
    503: "The rows cannot be read now.",
    504: "The statement took too long.",
    507: "A disk is full.",
}
RESPONSES: dict[int | str, Any] = {
    **parameters.ERRORS,
    406: parameters.LOADING[406],
    **{
        status: {"description": words, "content": errors.DOCUMENTED}
        for status, words in _WORDS.items()
    },
}


async def answered(
    request: Request,
    prefix: str,
    namespace: str,
    table: str,
    parse: Callable[[bytes], T],
    answer: Callable[[TableName, T], Awaitable[Answer]],
) -> Response:
    """Answer a request with a body for a table."""
    services = app_state.services(request)
    try:
        asking.check(prefix)
        name = asking.readable(services.tables, namespace, table)
        body = await bodies.read(request, services.max_body_bytes)
        wanted = await parsing.parsed(request, body, parse)
        return JSONResponse(await answer(name, wanted))
    except (CarawayError, RefusedRequestError) as exc:
        return errors.envelope(exc)
    except ClientDisconnect:
        return failures.CLIENT_GONE


def document(body: bytes) -> Answer:
    """Return a body that is a JSON object.

    Raises:
        InvalidRequestError: it is not an object.
    """
    document = parsing.json(body)
    if not isinstance(document, dict):
        raise InvalidRequestError("the request body must be a JSON object")
    return document
