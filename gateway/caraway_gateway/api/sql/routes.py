"""The routes of `/v1/sql`."""

import time
import uuid
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from caraway_core.errors import CarawayError
from caraway_gateway.api import app_state
from caraway_gateway.api.sql import documentation, requests
from caraway_gateway.api.sql.responses import AnswerResponse
from caraway_scheduler.queries.answers import StatementAnswer
from caraway_scheduler.queries.requests import QueryRequest
from caraway_scheduler.queries.service import QueryService
from caraway_serving import bodies, codings, errors, negotiation, parsing, scopes, streaming
from caraway_serving.routes import DirectRoute

router = APIRouter(tags=["SQL"], route_class=DirectRoute)


@router.post("/v1/sql", **documentation.RUN_SQL)
async def run_sql(request: Request) -> Response:
    """Run one SQL statement and stream its rows."""
    started = time.perf_counter()
    services = app_state.services(request)
    try:
        choice = negotiation.representation(request.headers.get("accept"))
        body = await bodies.read(request, services.max_body_bytes)
        content_type = request.headers.get("content-type")
        if requests.is_json(content_type):
            parse = partial(requests.parse, content_type=content_type)
            parsed = await parsing.parsed(request, body, parse, parsing.MOST_SQL_VALUES)
        else:
            parsed = requests.parse(body, content_type)
        query = _query(request, parsed)
        answer = services.queries.recall(query)
        if answer is None:
            answer = await streaming.unless_gone(request, services.queries.start(query))
    except (CarawayError, errors.RefusedRequestError) as exc:
        return errors.as_text(exc)
    except ClientDisconnect:
        return errors.CLIENT_GONE
    counts, label = services.tallies.query_returned_bytes, (query.protocol,)

    def count_bytes(sent: int) -> None:
        counts[label] += sent

    coding = codings.of_request(request.headers)
    headers = _headers(answer, services.queries, has_keys=services.keyring is not None)
    return AnswerResponse(answer, choice, coding, headers, count_bytes, started)


@router.get("/v1/sql/active", **documentation.LIST_ACTIVE)
async def list_active(request: Request) -> Response:
    """List the running statements of the caller."""
    principal = scopes.principal(request)
    if not principal.may_write:
        return _refusal(403, "listing active queries needs a key that ends in :rw")
    queries = [
        {
            "query_id": query.query_id,
            "protocol": query.protocol,
            "sql_preview": query.sql_preview,
            "started_at_ms": query.started_at_ms,
        }
        for query in app_state.services(request).queries.active.queries_of(principal.id)
    ]
    return JSONResponse({"queries": queries, "total_count": len(queries)})


@router.post("/v1/sql/{query_id}/cancel", **documentation.CANCEL)
async def cancel(
    request: Request,
    query_id: Annotated[str, Path(description="The `query_id` of a running statement.")],
) -> Response:
    """Cancel a running statement of the caller."""
    principal = scopes.principal(request)
    if not principal.may_write:
        return _refusal(403, "cancelling a query needs a key that ends in :rw")
    try:
        canonical = str(uuid.UUID(query_id))
    except ValueError:
        return _refusal(400, f"'{query_id}' is not a query id; query ids are UUIDs")
    query = app_state.services(request).queries.active.find(canonical, principal.id)
    if query is None:
        return _refusal(404, f"no active query {canonical}; GET /v1/sql/active lists them")
    query.stop("cancelled")
    return JSONResponse({"query_id": canonical, "status": "cancelled"})


def _query(request: Request, body: requests.SqlBody) -> QueryRequest:
    cache_control = request.headers.get("cache-control", "").lower()
    bypass = "no-cache" in cache_control or "no-store" in cache_control
    return QueryRequest(
        sql=body.sql,
        principal=scopes.principal(request),
        span=scopes.span(request),
        parameters=body.parameters,
        cache_control="bypass" if bypass else "use",
        user_agent=request.headers.get("user-agent", ""),
        takes_plain=True,
    )


def _headers(answer: StatementAnswer, queries: QueryService, has_keys: bool) -> dict[str, str]:
    headers = {"x-query-id": answer.query_id, "vary": "Accept, Accept-Encoding"}
    if answer.cache_status is not None:
        headers["results-cache-status"] = answer.cache_status
        headers["results-cache-scope"] = "user" if has_keys else "shared"
        if has_keys:
            headers["vary"] += ", Authorization, X-API-Key"
    return headers


def _refusal(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status)
