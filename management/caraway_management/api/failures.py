"""Error bodies: `{error, code?, details?}`, see the spec's table."""

import logging
import re
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError, IntegrityError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from caraway_core.errors import CarawayError
from caraway_management.domain import refusals
from caraway_management.domain.refusals import RefusedError
from caraway_serving import errors

logger = logging.getLogger(__name__)
_SHAPE = re.compile(r"[A-Z]\w*|str|int|float|(list|dict)\[.*\]", re.DOTALL)
"""The names that Pydantic gives the shapes of a union. Fields begin with a small letter."""
_WORDS = {404: "no such route", 405: "this route does not take {method}"}


def install(app: FastAPI) -> None:
    """Answer every error of the application in the same form."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused_by_framework)
    app.add_exception_handler(RefusedError, _refused)
    app.add_exception_handler(IntegrityError, _conflict)
    app.add_exception_handler(DBAPIError, _unkept)
    app.add_exception_handler(CarawayError, _failed)
    app.add_exception_handler(Exception, _bug)


def body_of(exc: RefusedError) -> dict[str, object]:
    """Return the body of a refusal."""
    body: dict[str, object] = {"error": exc.message}
    if exc.code:
        body["code"] = exc.code
    body |= exc.extra
    if exc.fields or exc.form:
        body["details"] = {"fieldErrors": exc.fields, "formErrors": list(exc.form)}
    return body


def answer(request: Request, exc: RefusedError) -> Response:
    """Return the response of a refusal; the activity log gets its code."""
    request.state.refusal = exc.code
    return JSONResponse(body_of(exc), exc.status, exc.headers)


async def _bug(request: Request, exc: Exception) -> Response:
    # It goes on to the gate that logs it.
    return answer_bug(request)


def answer_bug(request: Request) -> Response:
    """Return the response of an error that nothing expects; users get no traceback."""
    id_ = getattr(request.state, "request_id", "")
    text = f"internal error; the log has it under the request id {id_}"
    return answer(request, RefusedError(500, text))


async def _refused(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, RefusedError)
    return answer(request, exc)


async def _conflict(request: Request, exc: Exception) -> Response:
    # Two changes at once, of which the database let the first through.
    logger.info("conflicting changes", extra={"path": request.url.path})
    return answer(request, refusals.conflict("changed at the same time; read it and try again"))


async def _unkept(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, DBAPIError)
    # PostgreSQL takes no NUL in a text, also where it only looks for one.
    if not str(exc.orig).endswith(": 0x00"):
        raise exc
    return answer(request, refusals.invalid("a text has the character NUL, which cannot be kept"))


async def _failed(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, CarawayError)
    return answer_failed(request, exc)


def answer_failed(request: Request, exc: CarawayError) -> Response:
    """Return the response of an error that is not a refusal."""
    status = errors.status(exc)
    if status >= 500:
        logger.warning("request failed", extra={"path": request.url.path, "reason": str(exc)})
    refused = RefusedError(status, errors.words(exc), headers=errors.headers(exc))
    return answer(request, refused)


async def _refused_by_framework(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)
    words = _WORDS.get(exc.status_code, str(exc.detail)).format(method=request.method)
    return answer(request, RefusedError(exc.status_code, words, headers=exc.headers))


async def _invalid(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, RequestValidationError)
    fields: dict[str, list[str]] = {}
    form: list[str] = []
    for problem in exc.errors():
        path = _path(problem, exc.body)
        if problem["type"] == "json_invalid":
            form.append("the body is not valid JSON")
        elif path:
            fields.setdefault(".".join(map(str, path)), []).append(_message(problem))
        elif _message(problem) not in form:
            form.append(_message(problem))
    if fields and isinstance(exc.body, dict | list):
        # Problems of the other shapes say nothing about this body.
        form = []
    first = next((f"{name}: {texts[0]}" for name, texts in fields.items()), form[0] if form else "")
    return answer(request, RefusedError(400, first or "invalid request", fields=fields, form=form))


def _path(problem: Mapping[str, Any], body: Any) -> list[str | int]:
    """Return where a problem is, without the names of the shapes that a body may have."""
    where, *parts = problem["loc"]
    if where != "body" or problem["type"] == "json_invalid":
        return parts if where != "body" else []
    path: list[str | int] = []
    value = body
    for part in parts:
        is_there = (isinstance(value, dict) and part in value) or (
            isinstance(value, list) and isinstance(part, int)
        )
        if is_there:
            value = value[part]
        elif _SHAPE.fullmatch(str(part)):
            continue
        path.append(part)
    return path


def _message(problem: Mapping[str, Any]) -> str:
    if problem["type"] == "extra_forbidden":
        return "unknown field"
    if problem["type"] == "missing":
        return "is missing"
    text: str = problem["msg"]
    return text[:1].lower() + text[1:]
