"""The routes `/health` and `/v1/ready`, also served without keys on the metrics port."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import PlainTextResponse, Response

from caraway_gateway.api import app_state
from caraway_gateway.services import Services
from caraway_scheduler import readiness
from caraway_scheduler.readiness import Gates, Readiness
from caraway_serving import shapes

router = APIRouter(tags=["Health"])


@router.head("/health", include_in_schema=False)
@router.get("/health", response_class=PlainTextResponse)
async def health() -> Response:
    """Answer 200 while the process runs; needs no key."""
    return PlainTextResponse("ok\n")


@router.head("/v1/ready", include_in_schema=False)
@router.get(
    "/v1/ready",
    response_class=PlainTextResponse,
    responses={
        200: {"description": "Everything is loaded and every gate passes.", "content": shapes.TEXT},
        400: {"description": "A gate is out of range, or needs the scheduler role.",
              "content": shapes.TEXT},
        503: {"description": "A component or gate is not ready; `verbose` names it.",
              "content": shapes.TEXT},
    },
)  # fmt: skip
async def ready(
    request: Request,
    min_ready_executors: Annotated[
        int, Query(description="Minimum number of ready executors; 0 disables the gate.")
    ] = 0,
    min_ready_executors_percent: Annotated[
        int,
        Query(description="Minimum percentage of ready executors; 0 disables the gate."),
    ] = 0,
    verbose: Annotated[bool, Query(description="Return one line for each gate.")] = False,
) -> Response:
    """Answer 200 `ready` when every component can be queried and every gate passes."""
    services = app_state.services(request)
    gates = Gates(min_ready_executors, min_ready_executors_percent)
    return refusal(services, gates) or answer(services.readiness(gates), verbose=verbose)


def refusal(services: Services, gates: Gates) -> Response | None:
    """Return the response for gates that are invalid here, or None."""
    try:
        readiness.check_gates(gates, is_scheduler=services.is_scheduler)
    except readiness.GateError as exc:
        return PlainTextResponse(str(exc), 400)
    return None


def answer(found: Readiness, *, verbose: bool) -> Response:
    """Return the response for a verdict."""
    text = "\n".join((*found.lines, found.text)) if verbose else found.text
    return PlainTextResponse(text, 200 if found.is_ready else 503)
