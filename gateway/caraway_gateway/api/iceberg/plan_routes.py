"""Scans of tables that the server plans, in the Iceberg REST protocol."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import JSONResponse, Response

from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_gateway.api import app_state
from caraway_gateway.api.iceberg import asking, bodies_of_tables, errors, parameters
from caraway_gateway.api.iceberg.bodies_of_tables import Answer
from caraway_gateway.api.iceberg.parameters import Namespace, Prefix
from caraway_gateway.iceberg.planning import ScanRequest
from caraway_serving import scopes
from caraway_serving.errors import RefusedRequestError

router = APIRouter(tags=["Iceberg REST catalog"])
_TABLE = f"{parameters.BASE}/{{namespace}}/tables/{{table}}"
PlanId = Annotated[str, Path(description="The id of a planned scan.")]
_BODY: dict[str, object] = {
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
                        "snapshot-id": {"type": "integer"},
                    },
                }
            }
        },
    }
}
_TASK_BODY: dict[str, object] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["plan-task"],
                    "properties": {"plan-task": {"type": "string"}},
                }
            }
        },
    }
}


@router.post(
    f"{_TABLE}/plan",
    response_model=dict[str, Any],
    responses=bodies_of_tables.RESPONSES,
    openapi_extra=_BODY,
)
async def plan_scan(request: Request, prefix: Prefix, namespace: Namespace, table: str) -> Response:
    """Return the files to read for some columns and rows of a dataset or view.

    Rows that are in no files are exported for this scan. What is not there after a second is
    fetched by `plan-tasks`; with `Prefer: respond-async`, by asking for the plan.
    """
    tables = app_state.services(request).tables
    may_wait = "respond-async" in request.headers.get("prefer", "").lower()

    async def answer(name: TableName, wanted: ScanRequest) -> Answer:
        principal = scopes.principal(request)
        return await tables.plan(name, wanted, principal, may_wait=may_wait)

    return await bodies_of_tables.answered(request, prefix, namespace, table, _scan, answer)


@router.post(
    f"{_TABLE}/tasks",
    response_model=dict[str, Any],
    responses=bodies_of_tables.RESPONSES,
    openapi_extra=_TASK_BODY,
)
async def fetch_scan_tasks(
    request: Request, prefix: Prefix, namespace: Namespace, table: str
) -> Response:
    """Return more files of a planned scan, once they are there."""
    tables = app_state.services(request).tables

    async def answer(name: TableName, token: Any) -> Answer:
        place, owner = await tables.plan_place(), scopes.principal(request).id
        return await tables.plans.fetch(place, token, owner, name)

    return await bodies_of_tables.answered(
        request,
        prefix,
        namespace,
        table,
        lambda body: bodies_of_tables.document(body).get("plan-task"),
        answer,
    )


@router.get(
    f"{_TABLE}/plan/{{plan_id}}", response_model=dict[str, Any], responses=parameters.ERRORS
)
async def get_plan(
    request: Request, prefix: Prefix, namespace: Namespace, table: str, plan_id: PlanId
) -> Response:
    """Return the state of a planned scan, and the files to read that are there."""
    tables = app_state.services(request).tables
    try:
        asking.check(prefix)
        name = asking.readable(tables, namespace, table)
        owner = scopes.principal(request).id
        answer = await tables.plans.look(await tables.plan_place(), plan_id, owner, name)
    except (CarawayError, RefusedRequestError) as exc:
        return errors.envelope(exc)
    if (error := answer.get("error")) is not None:
        error["type"] = errors.kind(error["code"])
    return JSONResponse(answer)


@router.delete(f"{_TABLE}/plan/{{plan_id}}", status_code=204, responses=parameters.ERRORS)
async def cancel_plan(
    request: Request, prefix: Prefix, namespace: Namespace, table: str, plan_id: PlanId
) -> Response:
    """Stop planning a scan. Files that were given out can be read for another hour."""
    tables = app_state.services(request).tables
    try:
        asking.check(prefix)
        name = asking.readable(tables, namespace, table)
        owner = scopes.principal(request).id
        await tables.plans.cancel(await tables.plan_place(), plan_id, owner, name)
    except (CarawayError, RefusedRequestError) as exc:
        return errors.envelope(exc)
    return Response(status_code=204)


def _scan(body: bytes) -> ScanRequest:
    return (
        ScanRequest.from_document(bodies_of_tables.document(body))
        if body.strip()
        else ScanRequest()
    )
