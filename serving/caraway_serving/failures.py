"""Handles errors outside of routes: invalid parameters, unknown routes, internal errors."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from caraway_serving import errors, scopes
from caraway_serving.errors import RefusedRequestError

logger = logging.getLogger(__name__)
STOPPING = RefusedRequestError(
    503, "Runtime is shutting down", {"connection": "close", "retry-after": "2"}
)


@dataclass(frozen=True, slots=True)
class ErrorShapes:
    """The error format of each route, by path prefix; other paths use plain text.

    `others` are paths with a format of their own, and `families` path prefixes.
    """

    as_error: tuple[str, ...] = ()
    as_message: tuple[str, ...] = ()
    others: Mapping[str, errors.Answer] = field(default_factory=dict)
    families: Mapping[str, errors.Answer] = field(default_factory=dict)

    def answer_of(self, path: str) -> errors.Answer:
        """Return the function that formats errors of a route."""
        if path.startswith(self.as_error):
            return errors.as_error
        if (own := self.others.get(path)) is not None:
            return own
        for start, family in self.families.items():
            if path.startswith(start):
                return family
        return errors.as_message if path.startswith(self.as_message) else errors.as_text

    def answer(self, path: str, exc: RefusedRequestError) -> Response:
        """Return the response for a rejected request, in the format of its route."""
        return self.answer_of(path)(exc)


def install(
    app: FastAPI, shapes: ErrorShapes, is_stopping: Callable[[], bool] = lambda: False
) -> None:
    """Install the error handlers in the application.

    Once `is_stopping` is true, requests may meet parts that are closed: then they are refused.
    """
    app.state.error_shapes = shapes
    app.state.is_stopping = is_stopping
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _failed)


async def _invalid(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, RequestValidationError)
    problems = [
        f"{error['loc'][0]} parameter '{error['loc'][-1]}': {error['msg']}"
        for error in exc.errors()
    ]
    return _worded(request, 400, "; ".join(problems))


async def _refused(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)
    what = f"{request.method} {request.url.path}"
    headers = dict(exc.headers or {})
    if exc.status_code == 405:
        headers["Allow"] = ", ".join(_methods(request))
    words = {
        404: f"no route {what}; GET /openapi.json lists the routes",
        405: f"{what} is not allowed; use {headers.get('Allow')}",
    }
    response = _worded(request, exc.status_code, words.get(exc.status_code, str(exc.detail)))
    response.headers.update(headers)
    return response


def _methods(request: Request) -> list[str]:
    """Return the methods of a path, which several routes may share."""
    found = set[str]()
    for route in getattr(request.app.state, "routes", request.app.routes):
        if isinstance(route, Route) and route.path_regex.match(request.scope["path"]):
            found |= route.methods or set()
    return sorted(found)


async def _failed(request: Request, exc: Exception) -> Response:
    trace = scopes.span(request).trace_id
    logger.error("request failed", exc_info=exc, extra={"path": request.url.path})
    message = f"internal error; the log has the cause under trace id {trace}"
    response = (
        cast(ErrorShapes, request.app.state.error_shapes).answer(request.url.path, STOPPING)
        if request.app.state.is_stopping()
        else _worded(request, 500, message)
    )
    # The exception goes on to the server, which closes the connection: the client must know.
    response.headers["connection"] = "close"
    return response


def _worded(request: Request, status: int, message: str) -> Response:
    shapes = cast(ErrorShapes, request.app.state.error_shapes)
    return shapes.answer(request.url.path, RefusedRequestError(status, message))
