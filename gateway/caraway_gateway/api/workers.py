"""The route of `/v1/workers`."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from caraway_gateway.api import app_state
from caraway_serving import listings
from caraway_serving.listings import ListingFormat

router = APIRouter(tags=["Models"])
_COLUMNS = ("name", "description", "type", "is_llm")


class WorkerEntry(BaseModel):
    """A worker of the listing."""

    name: str
    description: str
    is_llm: bool


class WorkerList(BaseModel):
    """The listing of workers."""

    object: Literal["list"] = "list"
    data: list[WorkerEntry]


@router.get(
    "/v1/workers",
    response_model=WorkerList,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def list_workers(
    request: Request,
    format: Annotated[ListingFormat | None, Query(description="`json` (default) or `csv`.")] = None,
) -> Response:
    """List the workers of the manifest; those with `is_llm` can be named as a `model`."""
    workers = app_state.services(request).workers.declared
    rows: list[dict[str, Any]] = [
        {"name": each.name, "description": each.description or "", "is_llm": each.is_llm}
        for each in workers
    ]
    if listings.choose(format, request.headers.get("accept")) is ListingFormat.CSV:
        typed = [{**row, "type": each.type} for row, each in zip(rows, workers, strict=True)]
        return listings.respond(typed, _COLUMNS, ListingFormat.CSV, None)
    return JSONResponse({"object": "list", "data": rows})
