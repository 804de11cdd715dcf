"""The views of the Iceberg REST protocol: those of the manifest, with their SQL."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from caraway_gateway.api import app_state
from caraway_gateway.api.iceberg import asking, parameters
from caraway_gateway.api.iceberg.parameters import Namespace, Prefix, Size, Token

router = APIRouter(tags=["Iceberg REST catalog"])
_VIEWS = f"{parameters.BASE}/{{namespace}}/views"


@router.get(_VIEWS, response_model=dict[str, Any], responses=parameters.ERRORS)
async def list_all_views(
    request: Request,
    prefix: Prefix,
    namespace: Namespace,
    page_token: Token = None,
    page_size: Size = None,
) -> Response:
    """List the views of a schema."""
    tables = app_state.services(request).tables
    return asking.served(
        prefix, lambda: asking.listing(tables, tables.views, namespace, page_token, page_size)
    )


@router.get(f"{_VIEWS}/{{view}}", response_model=dict[str, Any], responses=parameters.LOADING)
async def load_view(request: Request, prefix: Prefix, namespace: Namespace, view: str) -> Response:
    """Load a view: its columns, and its SQL in the dialect of Caraway."""
    tables = app_state.services(request).tables
    return await asking.loaded(
        request, prefix, lambda: tables.load_view(asking.view(tables, namespace, view))
    )


@router.head(f"{_VIEWS}/{{view}}", status_code=204, responses=parameters.EXISTENCE)
async def view_exists(
    request: Request, prefix: Prefix, namespace: Namespace, view: str
) -> Response:
    """Say whether a view exists."""
    tables = app_state.services(request).tables
    return asking.exists(prefix, lambda: asking.view(tables, namespace, view))
