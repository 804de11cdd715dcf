"""Scans of tables that the server plans, in the Iceberg REST protocol."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from caraway_core.errors import CarawayError, InvalidRequestError
from caraway_scheduler.api import app_state
from caraway_scheduler.api.iceberg import asking, errors, parameters
from caraway_scheduler.api.iceberg.parameters import Namespace, Prefix
from caraway_scheduler.iceberg.planning import ScanRequest
from caraway_serving import bodies, parsing
from caraway_serving import errors as failures
from caraway_serving.errors import RefusedRequestError

router = APIRouter(tags=["Iceberg REST catalog"])
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": False,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "select": {"type": "array", "items": {"type": "string"}},
                        "filter": {"description": "An expression of the protocol."},
                        "case-sensitive": {"type": "boolean", "default": True},
                    },
                }
            }
        },
    }
}
_WORDS = {
    403: "The statement may not be run.",
    408: "The body stopped arriving.",
    413: "The body is too large.",
    415: "The Content-Encoding is not supported.",
    504: "The statement took too long.",
    507: "A disk is full.",
}
_RESPONSES: dict[int | str, Any] = {
    **parameters.ERRORS,
    406: parameters.LOADING[406],
    **{
        status: {"description": words, "content": errors.DOCUMENTED}
        for status, words in _WORDS.items()
    },
}


@router.post(
    f"{parameters.BASE}/{{namespace}}/tables/{{table}}/plan",
    response_model=dict[str, Any],
    responses=_RESPONSES,
    openapi_extra=_BODY,
)
async def plan_scan(request: Request, prefix: Prefix, namespace: Namespace, table: str) -> Response:
    """Return the files to read for some columns and rows of a dataset or view.

    Rows that are in no files are exported for this scan.
    """
    services = app_state.services(request)
    try:
        asking.check(prefix)
        name = asking.readable(services.tables, namespace, table)
        body = await bodies.read(request, services.max_body_bytes)
        wanted = await parsing.parsed(request, body, _parsed)
        answer = await services.tables.plan(name, wanted)
    except (CarawayError, RefusedRequestError) as exc:
        return errors.envelope(exc)
    except ClientDisconnect:
        return failures.CLIENT_GONE
    return JSONResponse(answer)


def _parsed(body: bytes) -> ScanRequest:
    if not body.strip():
        return ScanRequest()
    document = parsing.json(body)
    if not isinstance(document, dict):
        raise InvalidRequestError("the request body must be a JSON object")
    return ScanRequest.of(document)
