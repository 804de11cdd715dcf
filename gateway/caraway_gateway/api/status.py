"""The route `/v1/status`, which lists the listeners of this process."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from starlette.responses import Response

from caraway_gateway.api import app_state
from caraway_serving import listings
from caraway_serving.listings import ListingFormat

router = APIRouter(tags=["Status"])
_COLUMNS = ("name", "endpoint", "status")


class ConnectionDetail(BaseModel):
    """A listener; `endpoint` is `N/A` if it is disabled."""

    name: Literal["http", "flight", "metrics", "opentelemetry"]
    endpoint: str
    status: Literal["Ready", "Initializing", "Disabled", "Error"]


@router.get(
    "/v1/status",
    response_model=list[ConnectionDetail],
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def list_connections(
    request: Request,
    format: Annotated[ListingFormat | None, Query(description="`json` (default) or `csv`.")] = None,
) -> Response:
    """List the endpoints of this runtime and their states."""
    rows = [
        {"name": connection.name, "endpoint": connection.endpoint, "status": connection.status}
        for connection in app_state.services(request).connections
    ]
    return listings.respond(rows, _COLUMNS, format, request.headers.get("accept"))
