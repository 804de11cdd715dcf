"""The route `/v1/pods`, which lists the manifests; also `/v1/spicepods` for compatibility."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from starlette.responses import Response

from caraway_gateway.api import app_state
from caraway_serving import listings
from caraway_serving.listings import ListingFormat

router = APIRouter(tags=["Manifests"])
_COLUMNS = ("name", "version", "datasets_count", "models_count", "dependencies_count")


class ManifestSummary(BaseModel):
    """A manifest with the counts of its components."""

    name: str
    version: str
    datasets_count: int
    models_count: int
    dependencies_count: int


_ANSWERS: dict[str, Any] = {
    "response_model": list[ManifestSummary],
    "responses": {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
}


@router.get("/v1/spicepods", operation_id="list_spicepods", **_ANSWERS)
@router.get("/v1/pods", operation_id="list_manifests", **_ANSWERS)
async def list_manifests(
    request: Request,
    format: Annotated[ListingFormat | None, Query(description="`json` (default) or `csv`.")] = None,
) -> Response:
    """Summarise the manifest that is served."""
    manifest = app_state.services(request).manifest.current
    summary = ManifestSummary(
        name=manifest.name,
        version=manifest.version,
        datasets_count=len(manifest.datasets),
        models_count=0,
        dependencies_count=len(manifest.dependencies),
    )
    return listings.respond([summary.model_dump()], _COLUMNS, format, request.headers.get("accept"))
