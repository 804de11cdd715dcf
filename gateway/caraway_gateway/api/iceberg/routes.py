"""The routes of the Iceberg REST protocol, below the prefix that `/v1/config` names."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, Response

from caraway_gateway.api import app_state
from caraway_gateway.api.iceberg import asking, errors, parameters
from caraway_gateway.api.iceberg.parameters import Namespace, Prefix, Size, Token
from caraway_gateway.iceberg import names
from caraway_gateway.iceberg.names import CATALOG

router = APIRouter(tags=["Iceberg REST catalog"])
_NAMESPACE = f"{parameters.BASE}/{{namespace}}"
DELEGATION = "x-iceberg-access-delegation"
_METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE"]
_TABLE = f"{_NAMESPACE}/tables/{{table}}"


@router.get(parameters.BASE, response_model=dict[str, Any], responses=parameters.ERRORS)
async def list_all_namespaces(
    request: Request,
    prefix: Prefix,
    parent: Annotated[str | None, Query(description="A namespace; no schema has children.")] = None,
    page_token: Token = None,
    page_size: Size = None,
) -> Response:
    """List the schemas."""
    tables = app_state.services(request).tables

    def answer() -> Response:
        schemas = asking.schemas(tables)
        if parent:
            asking.schema(tables, names.parse(parent))
            schemas = []
        return asking.paged("namespaces", schemas, lambda each: [each], page_token, page_size)

    return asking.served(prefix, answer)


@router.get(_NAMESPACE, response_model=dict[str, Any], responses=parameters.ERRORS)
async def load_namespace(request: Request, prefix: Prefix, namespace: Namespace) -> Response:
    """Return a schema and its properties."""
    tables = app_state.services(request).tables

    def answer() -> Response:
        schema = asking.schema(tables, names.parse(namespace))
        return JSONResponse({"namespace": [schema], "properties": {}})

    return asking.served(prefix, answer)


@router.head(_NAMESPACE, status_code=204, responses=parameters.EXISTENCE)
async def namespace_exists(request: Request, prefix: Prefix, namespace: Namespace) -> Response:
    """Say whether a schema exists."""
    tables = app_state.services(request).tables
    return asking.exists(prefix, lambda: asking.schema(tables, names.parse(namespace)))


@router.get(f"{_NAMESPACE}/tables", response_model=dict[str, Any], responses=parameters.ERRORS)
async def list_all_tables(
    request: Request,
    prefix: Prefix,
    namespace: Namespace,
    page_token: Token = None,
    page_size: Size = None,
) -> Response:
    """List the datasets of a schema."""
    tables = app_state.services(request).tables
    return asking.served(
        prefix, lambda: asking.listing(tables, tables.datasets, namespace, page_token, page_size)
    )


@router.get(_TABLE, response_model=dict[str, Any], responses=parameters.LOADING)
async def load_iceberg_table(
    request: Request, prefix: Prefix, namespace: Namespace, table: str
) -> Response:
    """Load a dataset or view: metadata of its columns and files, which the client reads itself."""
    tables = app_state.services(request).tables
    accepted = [each.strip() for each in request.headers.get(DELEGATION, "").split(",")]
    return await asking.loaded(
        request, prefix, lambda: tables.load(asking.readable(tables, namespace, table), accepted)
    )


@router.head(_TABLE, status_code=204, responses=parameters.EXISTENCE)
async def table_exists(
    request: Request, prefix: Prefix, namespace: Namespace, table: str
) -> Response:
    """Say whether a dataset or view exists."""
    tables = app_state.services(request).tables
    return asking.exists(prefix, lambda: asking.readable(tables, namespace, table))


@router.api_route(f"/v1/{CATALOG}/{{rest:path}}", methods=_METHODS, include_in_schema=False)
async def refuse_others(request: Request) -> Response:
    """Refuse requests that would change the catalog, with the errors of the protocol."""
    return errors.refused(request)
