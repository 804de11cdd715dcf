"""The route of the last hour: how busy this scheduler was, for charts without a Prometheus."""

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from caraway_gateway.api import app_state
from caraway_scheduler.history import recent

router = APIRouter(tags=["Cluster"])


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
