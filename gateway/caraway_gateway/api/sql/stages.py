"""The stages of a running statement or job: once as JSON, or as events until it ends."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from caraway_core.concurrency.quotas import Quota
from caraway_core.errors import CarawayError, JobNotFoundError
from caraway_core.ids import PrincipalId, QueryId
from caraway_core.protocols.dispatch import StageProgress
from caraway_gateway.api import app_state
from caraway_gateway.api.chat import streams
from caraway_gateway.api.queries import submissions
from caraway_gateway.api.sql import documentation
from caraway_gateway.services import Services
from caraway_scheduler.queries.active import ActiveQuery
from caraway_serving import errors, scopes
from caraway_serving.errors import RefusedRequestError

router = APIRouter(tags=["SQL"])
_EVENTS = "text/event-stream"
_LOOK_S = 0.25
_END = b"event: end\ndata: {}\n\n"
_Document = dict[str, Any]
Look = Callable[[], _Document | None]
"""Describes a statement as it is now; None once it has ended."""


@router.get("/v1/sql/{query_id}/stages", **documentation.STAGES)
async def stages(
    request: Request,
    query_id: Annotated[
        str,
        Path(description="The id of a running statement or job, or the trace id of its request."),
    ],
) -> Response:
    """Return the stages of a running statement of the caller; with `Accept`, follow them."""
    services, principal = app_state.services(request), scopes.principal(request)
    try:
        look = await _found(services, query_id, principal.id)
        if _EVENTS not in request.headers.get("accept", ""):
            now = look()
            if now is None:
                message = f"no statement or job '{query_id[:100]}' of yours runs on this scheduler"
                raise RefusedRequestError(404, message)
            return JSONResponse(now)
        events = _events(look, services.stage_streams, principal.id)
        pump = await streams.opened(request, events)
    except (CarawayError, RefusedRequestError) as exc:
        return errors.as_error(exc)
    except ClientDisconnect:
        return errors.CLIENT_GONE
    return streams.EventStream(pump, _frame, _failed, _END)


async def _found(services: Services, text: str, principal: PrincipalId) -> Look:
    """Return what describes a statement or a job of the principal."""
    query = _statement(services, text, principal)
    if query is not None:
        return lambda: _of_statement(services, query)
    try:
        job = await services.jobs.service.find(principal, submissions.job_id(text))
    except JobNotFoundError:
        return lambda: None

    def of_job() -> _Document | None:
        statement = services.jobs.service.statement_of(job)
        if statement is None:
            return None
        return {"query_id": job.job_id, "stages": _listed(services, statement)}

    return of_job


def _statement(services: Services, text: str, principal: PrincipalId) -> ActiveQuery | None:
    try:
        # A trace id has the digits of a UUID.
        query_id = str(uuid.UUID(text))
    except ValueError:
        return None
    active = services.queries.active
    return active.find(query_id, principal) or active.traced(text.lower(), principal)


def _of_statement(services: Services, query: ActiveQuery) -> _Document | None:
    if services.queries.active.find(query.query_id, query.principal) is None:
        return None
    return {"query_id": query.query_id, "stages": _listed(services, query.query_id)}


def _listed(services: Services, query_id: QueryId) -> list[_Document]:
    return [_stage(each) for each in services.dispatch.stages(query_id)]


def _stage(stage: StageProgress) -> _Document:
    return {
        "name": stage.name,
        "note": stage.note,
        "state": stage.state,
        "reads": list(stage.reads),
        "tables": list(stage.tables),
        "tasks_done": stage.tasks_done,
        "tasks_total": stage.tasks_total,
        "rows": stage.rows,
        "bytes": stage.size_bytes,
        "began_at_ms": stage.began_at_ms,
        "ended_at_ms": stage.ended_at_ms,
        "executors": [
            {
                "executor_id": each.executor_id,
                "tasks": each.tasks,
                "rows": each.rows,
                "bytes": each.size_bytes,
                "elapsed_ms": round(each.elapsed_ms, 1),
            }
            for each in stage.work
        ],
    }


async def _events(
    look: Look, open_streams: Quota[object], principal: PrincipalId
) -> AsyncGenerator[_Document, None]:
    """Yield the document whenever it has changed, until the statement ends.

    Raises:
        OverloadedError: the principal has too many streams.
    """
    key, last = object(), None
    open_streams.add(principal, key)
    try:
        while (now := look()) is not None:
            if now != last:
                yield now
            last = now
            await asyncio.sleep(_LOOK_S)
    finally:
        open_streams.drop(key)


def _frame(event: _Document) -> bytes:
    return b"event: stages\n" + streams.data(event)


def _failed(error: _Document) -> bytes:
    return b"event: error\n" + streams.data(error)
