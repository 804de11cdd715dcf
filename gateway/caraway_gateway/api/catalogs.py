"""The route `/v1/catalogs`."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from caraway_gateway.api import app_state
from caraway_gateway.api.component_errors import ComponentError
from caraway_scheduler.catalog.source_catalog_states import SourceCatalogState
from caraway_scheduler.catalog.states import Status
from caraway_serving import listings
from caraway_serving.listings import ListingFormat

router = APIRouter(tags=["Catalogs"])
_BUILT_IN = "caraway"


class CatalogEntry(BaseModel):
    """A catalog of the listing. `status=true` adds the last fields, except to the built-in one.

    `tables` is the number of tables that statements can name.
    """

    source: str = Field(alias="from")
    name: str
    status: Status = "ready"
    error: ComponentError | None = None
    error_message: str | None = None
    tables: int | None = None


@router.get(
    "/v1/catalogs",
    response_model=list[CatalogEntry],
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def list_catalogs(
    request: Request,
    source: Annotated[
        str | None, Query(alias="from", description="Only catalogs from this source.")
    ] = None,
    status: Annotated[bool, Query(description="Add the status of each catalog.")] = False,
    format: Annotated[ListingFormat | None, Query(description="`json` (default) or `csv`.")] = None,
) -> Response:
    """List the catalogs. The built-in one contains the datasets and views of the manifest.

    CSV has the columns `from` and `name` alone.
    """
    rows: list[dict[str, Any]] = []
    if source in (None, _BUILT_IN):
        rows.append({"from": _BUILT_IN, "name": _BUILT_IN})
    for state in app_state.services(request).catalog.source_catalogs.states.values():
        if source in (None, state.declared.source, state.declared.connector):
            rows.append(_entry(state, status))
    return listings.respond(rows, ("from", "name"), format, request.headers.get("accept"))


def _entry(state: SourceCatalogState, with_status: bool) -> dict[str, Any]:
    entry: dict[str, object] = {"from": state.declared.source, "name": state.name}
    if with_status:
        error = state.error
        entry["status"] = state.status
        entry["error"] = ComponentError.from_error(error).model_dump() if error else None
        entry["error_message"] = error.message if error else None
        entry["tables"] = len(state.listed)
    return entry
