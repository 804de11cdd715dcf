"""Errors that no route words itself: wrong query parameters, unknown routes, our own faults."""

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response

from caraway_scheduler.api import scopes

logger = logging.getLogger(__name__)
_JSON_ERRORS = ("/v1/catalogs", "/v1/cluster/", "/v1/queries", "/internal/")


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
    words = {
        404: f"no route {what}; GET /openapi.json lists the routes",
        405: f"{what} is not allowed; use {(exc.headers or {}).get('Allow', 'another method')}",
    }
    response = _worded(request, exc.status_code, words.get(exc.status_code, str(exc.detail)))
    response.headers.update(exc.headers or {})
    return response


async def _failed(request: Request, exc: Exception) -> Response:
    trace = scopes.span(request).trace_id
    logger.error("request failed", exc_info=exc, extra={"path": request.url.path})
    return _worded(request, 500, f"internal error; the log has the cause under trace id {trace}")


def is_json_error(path: str) -> bool:
    """Whether the errors of a route are JSON; the others are plain text."""
    return path.startswith(_JSON_ERRORS)


def _worded(request: Request, status: int, message: str) -> Response:
    if is_json_error(request.url.path):
        return JSONResponse({"error": message}, status)
    return PlainTextResponse(message, status)
