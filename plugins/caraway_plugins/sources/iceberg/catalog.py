"""Catalogs that speak Iceberg's REST protocol: all tables of their namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import TableSpec
from caraway_plugins.sources.iceberg import rest
from caraway_plugins.sources.iceberg.rest import CatalogPath, Namespace
from caraway_plugins.sources.iceberg.source import IcebergSource
from caraway_plugins.sources.params import Params


class IcebergCatalog:
    """The tables of a catalog, or of a namespace. Each is read as a dataset `iceberg:` is.

    A described table is pinned to its snapshot, so the mark of one in use changes with its rows.
    """

    def tables(self, request: CatalogRequest) -> Iterator[ListedTable]:
        path = _path(request)
        with rest.connected(path, Params(request.params)) as catalog:
            own = [path.namespace] if path.namespace else []
            for namespace in chain(own, catalog.namespaces(path.namespace)):
                schema = _schema(path.namespace, namespace)
                for name in catalog.tables(namespace):
                    listed = ListedTable(schema, name)
                    if listed.title in request.described:
                        listed = replace(listed, mark=self._mark(request, listed))
                    yield listed

    def fingerprint(self, request: CatalogRequest) -> str | None:
        return None

    def resolve(self, request: CatalogRequest, table: ListedTable) -> TableSpec:
        return IcebergSource().resolve(_asked(request, table))

    def _mark(self, request: CatalogRequest, table: ListedTable) -> str:
        try:
            return IcebergSource().fingerprint(_asked(request, table)) or ""
        except DatasetError as exc:
            return exc.message  # Statements that name it get the error when they describe it.


def _path(request: CatalogRequest) -> CatalogPath:
    if not request.path.startswith(("http://", "https://")):
        raise DatasetError(
            "invalid",
            "`from: iceberg` of a catalog takes the address of a REST catalog; write "
            "iceberg:https://HOST/v1/namespaces, with the name of a namespace behind it for that "
            "one alone",
        )
    path = rest.path_of(request.path)
    if path.table:
        raise DatasetError("invalid", f"`from` names the table '{path.table}'; name a namespace")
    return path


def _schema(root: Namespace, namespace: Namespace) -> str:
    """Return the schema that a namespace is in names of three parts."""
    return ".".join(namespace[len(root) :]) or namespace[-1]


def _asked(request: CatalogRequest, table: ListedTable) -> SourceRequest:
    path = _path(request)
    root = path.namespace
    namespace = root if root and table.schema == root[-1] else (*root, table.schema)
    return SourceRequest(
        name=TableName(f"{request.name}.{table.title}"),
        connector=request.connector,
        path=rest.url_of(CatalogPath(path.base, path.prefix, namespace, table.name)),
        params=request.params,
        declared=(),
        access="read",
        base_dir=request.base_dir,
        cache_dir=request.cache_dir,
    )
