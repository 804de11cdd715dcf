"""Answers what no route answers itself: wrong parameters, unknown routes, our own faults."""

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from caraway_scheduler.api import errors, scopes
from caraway_scheduler.api.errors import RefusedError

logger = logging.getLogger(__name__)
_ERRORS = ("/v1/catalogs", "/v1/cluster/", "/v1/queries", "/internal/", "/v1/sql/")
_MESSAGES = ("/v1/datasets/",)


def install(app: FastAPI) -> None:
    """Give every such error the shape that the spec has for its route."""
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
    """Return the methods of a path; several routes may share one."""
    found = set[str]()
    for route in getattr(request.app.state, "routes", request.app.routes):
        if isinstance(route, Route) and route.path_regex.match(request.scope["path"]):
            found |= route.methods or set()
    return sorted(found)


async def _failed(request: Request, exc: Exception) -> Response:
    trace = scopes.span(request).trace_id
    logger.error("request failed", exc_info=exc, extra={"path": request.url.path})
    return _worded(request, 500, f"internal error; the log has the cause under trace id {trace}")


def shape(path: str) -> errors.Answer:
    """Return how the errors of a route are worded."""
    if path.startswith(_ERRORS):
        return errors.as_error
    return errors.as_message if path.startswith(_MESSAGES) else errors.as_text


def answer(path: str, exc: RefusedError) -> Response:
    """Answer a refusal in the shape that the spec has for the route."""
    return shape(path)(exc)


def _worded(request: Request, status: int, message: str) -> Response:
    return answer(request.url.path, RefusedError(status, message))
