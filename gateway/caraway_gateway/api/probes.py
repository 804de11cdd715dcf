"""The routes of the metrics port that kubelets ask; they need no key."""

import asyncio
import contextlib
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from caraway_gateway.api import app_state, health
from caraway_scheduler.readiness import Gates

_LONGEST_WAIT_S = 300
_POLL_S = 0.1
router = APIRouter()
router.add_api_route("/health", health.health, methods=["GET", "HEAD"])


@router.head("/v1/ready")
@router.get("/v1/ready")
async def ready(
    request: Request,
    min_ready_executors: int = 0,
    min_ready_executors_percent: int = 0,
    verbose: bool = False,
    probe: Literal["all", "pod"] = "all",
    wait: Annotated[int, Query(ge=0, le=_LONGEST_WAIT_S)] = 0,
) -> Response:
    """Answer as `/v1/ready` of the API, or to the probe of a pod.

    To a pod, 200 means that requests may be sent here: each part was loaded, or is in error. One
    part in error must not keep all others from being served. With `wait`, the answer comes once it
    is 200, or after that many seconds: a probe that fails is an event of the pod.
    """
    services = app_state.services(request)
    gates = Gates(min_ready_executors, min_ready_executors_percent)
    if refusal := health.refusal(services, gates):
        return refusal
    judge = services.readiness if probe == "all" else services.serves
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(wait):
            while not judge(gates).is_ready and not services.is_stopping:  # noqa: ASYNC110 -- no event
                await asyncio.sleep(_POLL_S)
    return health.answer(judge(gates), verbose=verbose)
