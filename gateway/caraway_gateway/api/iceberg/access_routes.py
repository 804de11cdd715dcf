"""Access to the files of tables for clients without credentials, in the Iceberg REST protocol."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_gateway.api import app_state
from caraway_gateway.api.iceberg import asking, bodies_of_tables, errors, parameters
from caraway_gateway.api.iceberg.bodies_of_tables import Answer
from caraway_gateway.api.iceberg.parameters import Namespace, Prefix
from caraway_gateway.iceberg.delegation import SignRequest
from caraway_serving import scopes
from caraway_serving.errors import RefusedRequestError

router = APIRouter(tags=["Iceberg REST catalog"])
_TABLE = f"{parameters.BASE}/{{namespace}}/tables/{{table}}"
_BODY: dict[str, object] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["method", "uri"],
                    "properties": {
                        "region": {"type": "string"},
                        "uri": {"type": "string"},
                        "method": {"type": "string", "enum": ["GET", "HEAD"]},
                        "headers": {"type": "object"},
                    },
                }
            }
        },
    }
}


@router.get(
    f"{_TABLE}/credentials", response_model=dict[str, Any], responses=bodies_of_tables.RESPONSES
)
async def load_credentials(
    request: Request, prefix: Prefix, namespace: Namespace, table: str
) -> Response:
    """Return temporary credentials for the files of a dataset."""
    tables = app_state.services(request).tables
    try:
        asking.check(prefix)
        credentials = await tables.credentials(asking.readable(tables, namespace, table))
    except (CarawayError, RefusedRequestError) as exc:
        return errors.envelope(exc)
    return JSONResponse({"storage-credentials": credentials}, headers={"cache-control": "no-store"})


@router.post(
    f"{_TABLE}/sign",
    response_model=dict[str, Any],
    responses=bodies_of_tables.RESPONSES,
    openapi_extra=_BODY,
)
async def sign_request(
    request: Request, prefix: Prefix, namespace: Namespace, table: str
) -> Response:
    """Sign a request to S3 that reads a file of a dataset.

    The answer has the URL to ask in its place, for a minute.
    """
    tables = app_state.services(request).tables

    async def answer(name: TableName, wanted: SignRequest) -> Answer:
        return await tables.sign(name, wanted, scopes.principal(request))

    return await bodies_of_tables.answered(
        request,
        prefix,
        namespace,
        table,
        lambda body: SignRequest.from_document(bodies_of_tables.document(body)),
        answer,
    )
