"""The routes `/v1/namespaces...` of the specification: catalogs, their schemas, and tables."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_gateway.api import app_state
from caraway_gateway.api.iceberg import asking, errors
from caraway_gateway.iceberg import names
from caraway_gateway.iceberg.names import CATALOG, QualifiedName
from caraway_gateway.iceberg.service import IcebergTables

router = APIRouter(tags=["Table catalog"])
Parts = tuple[str, ...]
Namespace = Annotated[
    str, Path(description="The parts of a namespace with U+001F (`%1F`) or dots between them.")
]
Table = Annotated[str, Path(description="The name of a table.")]
_INVALID = {"description": "The namespace is not valid.", "content": errors.DOCUMENTED}
_MISSING = {"description": "There is no such namespace.", "content": errors.DOCUMENTED}
_NO_TABLE = {"description": "There is no such table.", "content": errors.DOCUMENTED}
_NO_FORM = {"description": "Iceberg has no form for it.", "content": errors.DOCUMENTED}
_ERRORS: dict[int | str, Any] = {400: _INVALID, 404: _MISSING}
_EXISTENCE: dict[int | str, Any] = {
    200: {"description": "It exists."},
    400: {"description": "The namespace is not valid."},
    404: {"description": "It does not exist."},
}


class NamespaceEntry(BaseModel):
    """A namespace; one of several levels has several parts."""

    parts: list[str]


class NamespaceList(BaseModel):
    """Namespaces."""

    namespaces: list[NamespaceEntry]


class TableEntry(BaseModel):
    """A table and where it is."""

    namespace: NamespaceEntry
    name: str


class TableList(BaseModel):
    """The tables of a namespace."""

    identifiers: list[TableEntry]


@router.get("/v1/namespaces", response_model=NamespaceList, responses=_ERRORS)
async def list_namespaces(
    request: Request,
    parent: Annotated[
        str | None, Query(description="A namespace; its children are listed.")
    ] = None,
) -> Response:
    """List the catalogs, or the namespaces below `parent`: the schemas of a catalog."""
    tables = app_state.services(request).tables
    try:
        parts = names.parse(parent) if parent else ()
        _check(tables, parts)
    except CarawayError as exc:
        return errors.envelope(exc)
    below = {0: [[CATALOG]], 1: [[CATALOG, each] for each in asking.schemas(tables)]}
    return JSONResponse({"namespaces": [{"parts": each} for each in below.get(len(parts), [])]})


@router.get("/v1/namespaces/{namespace}", response_model=NamespaceList, responses=_ERRORS)
async def get_namespace(request: Request, namespace: Namespace) -> Response:
    """Return a namespace if it exists."""
    try:
        parts = names.parse(namespace)
        _check(app_state.services(request).tables, parts)
    except CarawayError as exc:
        return errors.envelope(exc)
    return JSONResponse({"namespaces": [{"parts": list(parts)}]})


@router.head("/v1/namespaces/{namespace}", responses=_EXISTENCE)
async def has_namespace(request: Request, namespace: Namespace) -> Response:
    """Say whether a namespace exists."""
    return _bare(await get_namespace(request, namespace))


@router.get("/v1/namespaces/{namespace}/tables", response_model=TableList, responses=_ERRORS)
async def list_tables(request: Request, namespace: Namespace) -> Response:
    """List the datasets and views of a namespace; a catalog has none itself."""
    tables = app_state.services(request).tables
    try:
        parts = names.parse(namespace)
        _check(tables, parts)
    except CarawayError as exc:
        return errors.envelope(exc)
    entry = {"parts": list(parts)}
    identifiers = [{"namespace": entry, "name": name} for name in _inside(tables, parts)]
    return JSONResponse({"identifiers": identifiers})


@router.get(
    "/v1/namespaces/{namespace}/tables/{table}",
    response_model=dict[str, Any],
    responses={400: _INVALID, 404: _NO_TABLE, 406: _NO_FORM},
)
async def load_table(request: Request, namespace: Namespace, table: Table) -> Response:
    """Load a dataset or view as a table of Iceberg."""
    tables = app_state.services(request).tables
    try:
        content = await tables.load(_found(tables, namespace, table))
    except CarawayError as exc:
        return errors.envelope(exc)
    return Response(content, media_type="application/json")


@router.head("/v1/namespaces/{namespace}/tables/{table}", responses=_EXISTENCE)
async def has_table(request: Request, namespace: Namespace, table: Table) -> Response:
    """Say whether a dataset or view exists."""
    try:
        _found(app_state.services(request).tables, namespace, table)
    except CarawayError as exc:
        return _bare(errors.envelope(exc))
    return Response(status_code=200)


def _check(tables: IcebergTables, parts: Parts) -> None:
    """Check that a namespace exists: the catalogs, a catalog, or a schema of it."""
    schemas = {(), (CATALOG,), *((CATALOG, each) for each in asking.schemas(tables))}
    if parts not in schemas:
        raise names.no_namespace(parts)


def _inside(tables: IcebergTables, parts: Parts) -> Mapping[str, QualifiedName]:
    if len(parts) < 2:
        return {}
    return names.inside((*tables.datasets, *tables.views), parts[1])


def _found(tables: IcebergTables, namespace: str, table: str) -> TableName:
    parts = names.parse(namespace)
    try:
        _check(tables, parts)
        inside = _inside(tables, parts)
    except names.NoNamespaceError:
        inside = {}
    if table not in inside:
        raise names.no_table(table, parts)
    return inside[table].known_as


def _bare(response: Response) -> Response:
    """Return the status of a response alone."""
    return Response(status_code=response.status_code)
