"""The route of `/v1/functions`."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from caraway_core.sqltext.sql_functions import SqlFunction
from caraway_gateway.api import app_state
from caraway_serving import listings
from caraway_serving.listings import ListingFormat

router = APIRouter(tags=["SQL"])
_COLUMNS = ("name", "kind", "volatility", "from", "signature", "description", "as_tool")


class FunctionParameterEntry(BaseModel):
    """A parameter; `default` is SQL, and null where a call must give a value."""

    name: str
    type: str
    description: str | None
    default: str | None


class FunctionColumnEntry(BaseModel):
    """A column that a table function returns."""

    name: str
    type: str


class FunctionEntry(BaseModel):
    """A function of the manifest.

    `returns` is the type of a scalar function, and lists the columns of a table; null: those of its
    query.
    """

    name: str
    kind: Literal["scalar", "table"]
    volatility: Literal["immutable", "stable", "volatile"]
    from_: Literal["sql"] = Field(alias="from")
    signature: str
    description: str | None
    parameters: list[FunctionParameterEntry]
    returns: str | list[FunctionColumnEntry] | None
    as_tool: bool
    metadata: dict[str, Any]


@router.get(
    "/v1/functions",
    response_model=list[FunctionEntry],
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def list_functions(
    request: Request,
    format: Annotated[ListingFormat | None, Query(description="`json` (default) or `csv`.")] = None,
) -> Response:
    """List the functions of the manifest; those of the engine are not among them."""
    rows = list(map(_entry, app_state.services(request).functions.declared))
    chosen = listings.choose(format, request.headers.get("accept"))
    return listings.respond(rows, _COLUMNS, chosen, None)


def _entry(function: SqlFunction) -> dict[str, Any]:
    returns: object = function.returns.type if function.returns is not None else None
    if function.columns:
        returns = [{"name": each.name, "type": each.cast.type} for each in function.columns]
    return {
        "name": function.name,
        "kind": function.kind,
        "volatility": function.volatility,
        "from": "sql",
        "signature": function.signature,
        "description": function.description,
        "parameters": [
            {
                "name": each.name,
                "type": each.cast.type,
                "description": each.description,
                "default": each.default,
            }
            for each in function.parameters
        ],
        "returns": returns,
        "as_tool": function.as_tool,
        "metadata": dict(function.metadata),
    }
