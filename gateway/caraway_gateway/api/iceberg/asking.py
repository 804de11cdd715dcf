"""Finds schemas and tables for routes of the table catalog, and words their answers."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_gateway.api.iceberg import errors, pages
from caraway_gateway.iceberg import names
from caraway_gateway.iceberg.names import CATALOG, QualifiedName
from caraway_gateway.iceberg.service import IcebergTables
from caraway_serving.errors import RefusedRequestError


def schemas(tables: IcebergTables) -> list[str]:
    """Return the schemas of datasets and views."""
    return names.schemas((*tables.datasets, *tables.views))


def schema(tables: IcebergTables, parts: tuple[str, ...]) -> str:
    """Return the schema that a namespace of the protocol means.

    Raises:
        NoNamespaceError: there is none.
    """
    if len(parts) != 1 or parts[0] not in schemas(tables):
        raise names.no_namespace(parts)
    return parts[0]


def readable(tables: IcebergTables, namespace: str, name: str) -> TableName:
    """Return the name in the manifest of a dataset or view, whose rows a scan can read.

    Raises:
        CarawayError: there is none, or the namespace is not valid.
    """
    parts = names.parse(namespace)
    inside = _inside(tables, (*tables.datasets, *tables.views), parts)
    if name not in inside:
        raise names.no_table(name, parts)
    return inside[name].known_as


def view(tables: IcebergTables, namespace: str, name: str) -> TableName:
    """Return the name in the manifest of a view.

    Raises:
        CarawayError: there is none, or the namespace is not valid.
    """
    parts = names.parse(namespace)
    inside = _inside(tables, tables.views, parts)
    if name not in inside:
        raise names.no_view(name, parts)
    return inside[name].known_as


def served(prefix: str, answer: Callable[[], Response]) -> Response:
    """Answer for the catalog of a prefix."""
    try:
        check(prefix)
        return answer()
    except (CarawayError, RefusedRequestError) as exc:
        return errors.envelope(exc)


def exists(prefix: str, find: Callable[[], object]) -> Response:
    """Say whether something of the catalog exists."""

    def answer() -> Response:
        find()
        return Response(status_code=204)

    return Response(status_code=served(prefix, answer).status_code)


async def loaded(request: Request, prefix: str, load: Callable[[], Awaitable[bytes]]) -> Response:
    """Return the loaded table, unless the client has it."""
    try:
        check(prefix)
        content = await load()
    except (CarawayError, RefusedRequestError) as exc:
        return errors.envelope(exc)
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"etag": tag})
    return Response(content, media_type="application/json", headers={"etag": tag})


def listing(
    tables: IcebergTables,
    among: Sequence[TableName],
    namespace: str,
    token: str | None,
    size: int | None,
) -> Response:
    """List the names of a schema.

    Raises:
        CarawayError: there is no such schema, or the token is not valid.
    """
    inside = schema(tables, names.parse(namespace))
    items = list(names.inside(among, inside))
    return paged(
        "identifiers", items, lambda each: {"namespace": [inside], "name": each}, token, size
    )


def paged(
    key: str,
    items: Sequence[str],
    entry: Callable[[str], object],
    token: str | None,
    size: int | None,
) -> Response:
    """Answer with one page of items.

    Raises:
        InvalidRequestError: the token is not valid.
    """
    taken, following = pages.page(items, token, size)
    return JSONResponse({key: [entry(each) for each in taken], "next-page-token": following})


def _inside(
    tables: IcebergTables, among: Sequence[TableName], parts: tuple[str, ...]
) -> Mapping[str, QualifiedName]:
    try:
        return names.inside(among, schema(tables, parts))
    except names.NoNamespaceError:
        return {}


def check(prefix: str) -> None:
    """Check that a prefix is that of the catalog.

    Raises:
        RefusedRequestError: it is not.
    """
    if prefix != CATALOG:
        raise errors.no_catalog(prefix)
