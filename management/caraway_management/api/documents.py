"""`/v1/docs`: the description of the API under other paths and as a page, and of manifests."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from caraway_core.manifest import schema
from caraway_management.api.credentials import pages

router = APIRouter(prefix="/v1/docs", include_in_schema=False)


@router.get("/openapi.json")
async def get_description(request: Request) -> Response:
    """Return the description, as `/openapi.json` does."""
    return JSONResponse(request.app.openapi())


@router.get("/manifest.schema.json")
async def get_manifest_schema() -> Response:
    """Return the JSON Schema of manifests, for editors."""
    return JSONResponse(schema.json_schema(), media_type="application/schema+json")


@router.get("")
async def get_documentation(request: Request) -> Response:
    """Show every route with the first lines of its description, as a page without scripts."""
    document = request.app.openapi()
    routes = "".join(f"<li>{each}</li>" for each in _lines(document))
    link = f'<p><a href="{pages.address(request, "/openapi.json")}">openapi.json</a></p>'
    return pages.page(document["info"]["title"], f"{link}<ul>{routes}</ul>")


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            said = operation.get("description", "").partition("\n\n")[0]
            yield f"<code>{method.upper()} {escape(path)}</code><br>{escape(said)}"
