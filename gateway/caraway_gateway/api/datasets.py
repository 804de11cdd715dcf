"""The route `/v1/datasets`."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from caraway_acceleration.standings.standings import DatasetStanding
from caraway_gateway.api import app_state
from caraway_gateway.api.component_errors import ComponentError
from caraway_gateway.api.dataset_lag import DatasetLag
from caraway_scheduler.catalog.states import DatasetState, Status
from caraway_serving import listings
from caraway_serving.listings import ListingFormat

router = APIRouter(tags=["Datasets"])
_COLUMNS = ("from", "name", "replication_enabled", "acceleration_enabled", "status", "error",
            "error_message")  # fmt: skip


class DatasetEntry(BaseModel):
    """A dataset of the listing. `status=true` adds the last five fields.

    `progress` has the rows that the running refresh has read, and the rate; without one it is null.
    `lag` is null for datasets that are not accelerated, or not loaded yet.
    """

    source: str = Field(alias="from")
    name: str
    replication_enabled: bool
    acceleration_enabled: bool
    status: Status = "initializing"
    error: ComponentError | None = None
    error_message: str | None = None
    progress: str | None = None
    lag: DatasetLag | None = None


@router.get(
    "/v1/datasets",
    response_model=list[DatasetEntry],
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def list_datasets(
    request: Request,
    status: Annotated[bool, Query(description="Add the status of each dataset.")] = False,
    format: Annotated[ListingFormat | None, Query(description="`json` (default) or `csv`.")] = None,
    source: Annotated[str | None, Query(description="Only datasets from this source.")] = None,
) -> Response:
    """List the datasets of the manifest.

    CSV has the same columns with and without `status`, and neither `progress` nor `lag`.
    """
    services = app_state.services(request)
    states = services.catalog.datasets.values()
    standings = {
        each.refreshes.dataset: each
        for each in (services.accelerations.standings() if status else ())
    }
    rows = [
        _entry(state, status, standings.get(state.name))
        for state in states
        if _is_from(state, source)
    ]
    return listings.respond(rows, _COLUMNS, format, request.headers.get("accept"))


def _is_from(state: DatasetState, source: str | None) -> bool:
    return source is None or source in (state.dataset.connector, state.dataset.source)


def _entry(
    state: DatasetState, with_status: bool, standing: DatasetStanding | None
) -> dict[str, Any]:
    entry: dict[str, object] = {
        "from": state.dataset.source,
        "name": state.dataset.name,
        "replication_enabled": state.dataset.replication_enabled,
        "acceleration_enabled": state.dataset.acceleration_enabled,
    }
    if with_status:
        error = state.error
        entry["status"] = state.status
        entry["error"] = ComponentError.from_error(error).model_dump() if error else None
        entry["error_message"] = error.message if error else None
        entry["progress"] = (standing.progress if standing else "") or None
        lag = standing.lag if standing else None
        entry["lag"] = DatasetLag.from_lag(lag).model_dump(mode="json") if lag else None
    return entry
