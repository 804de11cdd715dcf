"""The routes of `/v1/cluster`: the executors, of which there is one without a cluster, and the last
hour, for charts without a Prometheus.
"""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from caraway_core.protocols.dispatch import ExecutorState
from caraway_gateway.api import app_state
from caraway_scheduler.history import recent
from caraway_scheduler.membership import listing
from caraway_serving import listings
from caraway_serving.listings import ListingFormat

router = APIRouter(tags=["Cluster"])


class ExecutorEntry(BaseModel):
    """An executor of the listing; `reason` explains why it is not ready."""

    executor_id: str
    state: ExecutorState
    reason: str | None
    address: str
    cores: int
    memory_bytes: int
    memory_used_bytes: int
    active_tasks: int
    finished_tasks: int
    failed_tasks: int
    catalog_version: int | None
    holds: list[str]
    heartbeat_age_ms: int
    protocol_version: int
    build: str
    incarnation: str


@router.get(
    "/v1/cluster/executors",
    response_model=list[ExecutorEntry],
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def list_executors(
    request: Request,
    format: Annotated[ListingFormat | None, Query(description="`json` (default) or `csv`.")] = None,
) -> Response:
    """List the executors, including lost and refused ones."""
    rows = listing.rows(app_state.services(request).dispatch.executors())
    return listings.respond(rows, listing.SCHEMA.names, format, request.headers.get("accept"))


class LastHour(BaseModel):
    """Columns of samples, oldest first; `columns.at_ms` has their times.

    `statements`, `failures`, `busy_ms`, `rows`, `bytes` and `requests` are what was added since the
    sample before; the other columns hold at the moment. `engine_ends` counts engine processes of
    this scheduler that ended by cause, and `engine_refusals` the statements refused for them, since
    its start.
    """

    every_s: float
    schedulers: int
    columns: dict[str, list[float | None]]
    engine_ends: dict[str, int]
    engine_refusals: dict[str, int]


@router.get("/v1/cluster/recent", response_model=LastHour)
async def last_hour(request: Request) -> Response:
    """Return the samples of the last hour of this scheduler."""
    services = app_state.services(request)
    report = services.engines()
    return JSONResponse(
        {
            "every_s": recent.EVERY_S,
            "schedulers": services.scheduler_count(),
            "columns": services.recent.columns(),
            "engine_ends": dict(report.ends),
            "engine_refusals": dict(report.refusals),
        }
    )
