"""The route `/v1/config`, which shows Iceberg clients the routes and settings."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from caraway_gateway.api import app_state
from caraway_gateway.api.iceberg import errors
from caraway_gateway.iceberg.names import CATALOG

router = APIRouter(tags=["Table catalog"])
_NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
ENDPOINTS = (
    "GET /v1/{prefix}/namespaces",
    f"GET {_NAMESPACE}",
    f"HEAD {_NAMESPACE}",
    f"GET {_NAMESPACE}/tables",
    f"GET {_NAMESPACE}/tables/{{table}}",
    f"HEAD {_NAMESPACE}/tables/{{table}}",
    f"POST {_NAMESPACE}/tables/{{table}}/plan",
    f"GET {_NAMESPACE}/tables/{{table}}/plan/{{plan-id}}",
    f"DELETE {_NAMESPACE}/tables/{{table}}/plan/{{plan-id}}",
    f"POST {_NAMESPACE}/tables/{{table}}/tasks",
    f"GET {_NAMESPACE}/views",
    f"GET {_NAMESPACE}/views/{{view}}",
    f"HEAD {_NAMESPACE}/views/{{view}}",
)


OF_MODES = {
    "remote-signing": f"POST {_NAMESPACE}/tables/{{table}}/sign",
    "vended-credentials": f"GET {_NAMESPACE}/tables/{{table}}/credentials",
}
"""Routes that are served where the manifest switches them on."""


class CatalogConfig(BaseModel):
    """Settings that override and complete those of clients, and the routes that they may call."""

    overrides: dict[str, str]
    defaults: dict[str, str]
    endpoints: list[str]


@router.get(
    "/v1/config",
    response_model=CatalogConfig,
    responses={404: {"description": "No such catalog.", "content": errors.DOCUMENTED}},
)
async def get_config(
    request: Request,
    warehouse: Annotated[
        str | None, Query(description="The catalog; `caraway` is the only one.")
    ] = None,
) -> Response:
    """Return what Iceberg clients need first: the prefix of the routes, and which there are."""
    if warehouse not in (None, "", CATALOG):
        return errors.envelope(errors.no_catalog(warehouse))
    overrides = {"prefix": CATALOG, "namespace-separator": "%1F"}
    modes = app_state.services(request).tables.access.modes
    endpoints = [*ENDPOINTS, *(OF_MODES[each] for each in modes)]
    return JSONResponse({"defaults": {}, "overrides": overrides, "endpoints": endpoints})
