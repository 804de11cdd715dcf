"""The route `/v1/catalogs`."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from caraway_serving import listings
from caraway_serving.listings import ListingFormat

router = APIRouter(tags=["Catalogs"])
_BUILT_IN = {"from": "caraway", "name": "caraway"}


class CatalogEntry(BaseModel):
    """A catalog of the listing."""

    source: str = Field(alias="from")
    name: str


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
    format: Annotated[ListingFormat | None, Query(description="`json` (default) or `csv`.")] = None,
) -> Response:
    """List the catalogs. The built-in one contains the datasets and views of the manifest."""
    rows = [_BUILT_IN] if source in (None, _BUILT_IN["from"]) else []
    return listings.respond(rows, ("from", "name"), format, request.headers.get("accept"))
