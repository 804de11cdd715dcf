"""The route `/v1/cluster/executors`; without a cluster, it lists one executor."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from starlette.responses import Response

from caraway_core.protocols.dispatch import ExecutorState
from caraway_gateway.api import app_state
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
