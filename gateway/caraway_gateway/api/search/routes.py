"""Searches datasets by meaning and by words."""

import time

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from caraway_assist.search.service import SearchAnswer
from caraway_core.errors import CarawayError
from caraway_gateway.api import app_state
from caraway_gateway.api.search import bodies as search_bodies
from caraway_gateway.api.search import documentation
from caraway_serving import bodies, errors, parsing, scopes, streaming
from caraway_serving.routes import DirectRoute

router = APIRouter(tags=["Search"], route_class=DirectRoute)


@router.post("/v1/search", **documentation.SEARCH)
async def search(request: Request) -> Response:
    """Search datasets by meaning and by words."""
    started = time.perf_counter()
    services = app_state.services(request)
    try:
        body = await bodies.read(request, services.max_body_bytes)
        work = services.search.search(
            await parsing.parsed(request, body, search_bodies.parse, parsing.MOST_SQL_VALUES),
            scopes.principal(request),
            scopes.span(request),
            bypass=_is_bypassing(request),
        )
        answer = await streaming.unless_gone(request, work)
    except (CarawayError, errors.RefusedRequestError) as exc:
        return errors.as_error(exc)
    except ClientDisconnect:
        return errors.CLIENT_GONE
    duration_ms = round((time.perf_counter() - started) * 1000)
    return Response(
        b'{"results":%b,"duration_ms":%d}' % (answer.results, duration_ms),
        media_type="application/json",
        headers=_headers(answer, has_keys=services.keyring is not None),
    )


def _is_bypassing(request: Request) -> bool:
    asked = request.headers.get("cache-control", "").lower()
    return "no-cache" in asked or "no-store" in asked


def _headers(answer: SearchAnswer, *, has_keys: bool) -> dict[str, str]:
    if answer.cache_status is None:
        return {}
    headers = {
        "search-results-cache-status": answer.cache_status,
        "search-results-cache-scope": "user" if has_keys else "shared",
    }
    return {**headers, "vary": "Authorization, X-API-Key"} if has_keys else headers
