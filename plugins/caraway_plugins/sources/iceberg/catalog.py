"""Catalogs of Iceberg: all tables of their namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import RemoteTable, TableSpec
from caraway_plugins.sources.iceberg import (
    locations,
    opening,
    pointer_catalogs,
    pointers,
    rest,
    warehouses,
)
from caraway_plugins.sources.iceberg.pointers import PointerPath
from caraway_plugins.sources.iceberg.rest import CatalogPath, Namespace
from caraway_plugins.sources.iceberg.source import IcebergSource
from caraway_plugins.sources.iceberg.writing import written
from caraway_plugins.sources.params import Params


class IcebergCatalog:
    """The tables of a catalog, or of a namespace. Each is read as a dataset `iceberg:` is.

    A described table is pinned to its snapshot, so the mark of one in use changes with its rows.
    """

    def tables(self, request: CatalogRequest) -> Iterator[ListedTable]:
        if (pointer := pointers.path_of(request.path)) is not None:
            yield from _pointed(request, pointer)
            return
        if _is_folder(request):
            yield from self._in_folder(request)
            return
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

    def place(self, request: CatalogRequest, table: ListedTable) -> RemoteTable:
        """See `CreatingCatalogSource.place`."""
        if pointers.path_of(request.path) is not None or _is_folder(request):
            raise DatasetError(
                "invalid", "tables of Iceberg are created and dropped in catalogs that speak REST"
            )
        return written.remote_table(_asked(request, table), pa.schema([]))

    def _in_folder(self, request: CatalogRequest) -> Iterator[ListedTable]:
        asked = _source_request(request, request.name, request.path)
        folder = _folder_name(request)
        found = warehouses.tables(opening.table_files(asked, {}).place(opening.root(asked)))
        for *namespace, name in found:
            if namespace == [folder]:
                message = f"folder '{folder}' has a folder of its own name; name that in `from`"
                raise DatasetError("invalid", message)
            listed = ListedTable(".".join(namespace) or folder, name)
            if listed.title in request.described:
                listed = replace(listed, mark=self._mark(request, listed))
            yield listed

    def _mark(self, request: CatalogRequest, table: ListedTable) -> str:
        try:
            return IcebergSource().fingerprint(_asked(request, table)) or ""
        except DatasetError as exc:
            return exc.message  # Statements that name it get the error when they describe it.


def _pointed(request: CatalogRequest, path: PointerPath) -> Iterator[ListedTable]:
    _refuse_table(path.table)
    asked = _source_request(request, request.name, request.path)
    for each in pointer_catalogs.catalog_of(path).tables(asked, path):
        listed = ListedTable(_schema(path.namespace, each.namespace), each.name)
        mark = each.location if listed.title in request.described else ""
        yield replace(listed, mark=mark)


def _is_folder(request: CatalogRequest) -> bool:
    return bool(request.path) and locations.is_known(request.path)


def _folder_name(request: CatalogRequest) -> str:
    """Return the schema of tables that are in the folder of the catalog itself."""
    return request.path.rstrip("/").rpartition("/")[2] or "default"


def _path(request: CatalogRequest) -> CatalogPath:
    if not request.path.startswith(("http://", "https://")):
        raise DatasetError(
            "invalid",
            "`from: iceberg` of a catalog names its kind; write iceberg:https://HOST/v1/namespaces "
            "for one that speaks REST, iceberg:sqlite://, iceberg:postgres://, iceberg:glue:// or "
            "iceberg:hive://, with the name of a namespace behind it for that one alone, or "
            "iceberg:FOLDER for a folder of tables",
        )
    path = rest.path_of(request.path)
    _refuse_table(path.table)
    return path


def _refuse_table(table: str) -> None:
    if table:
        raise DatasetError("invalid", f"`from` names the table '{table}'; name a namespace")


def _schema(root: Namespace, namespace: Namespace) -> str:
    """Return the schema that a namespace is in names of three parts."""
    return ".".join(namespace[len(root) :]) or namespace[-1]


def _asked(request: CatalogRequest, table: ListedTable) -> SourceRequest:
    pointer = pointers.path_of(request.path)
    if pointer is None and _is_folder(request):
        return _source_request(request, f"{request.name}.{table.title}", _folder(request, table))
    root = pointer.namespace if pointer else _path(request).namespace
    namespace = root if root and table.schema == root[-1] else (*root, table.schema)
    if pointer is not None:
        path = PointerPath(pointer.kind, namespace, table.name).text
    else:
        found = _path(request)
        path = rest.url_of(CatalogPath(found.base, found.prefix, namespace, table.name))
    return _source_request(request, f"{request.name}.{table.title}", path)


def _folder(request: CatalogRequest, table: ListedTable) -> str:
    """Return the path of a table in a folder of tables."""
    own = [] if table.schema == _folder_name(request) else table.schema.split(".")
    return "/".join((request.path.rstrip("/"), *own, table.name))


def _source_request(request: CatalogRequest, name: str, path: str) -> SourceRequest:
    return SourceRequest(
        name=TableName(name),
        connector=request.connector,
        path=path,
        params=request.params,
        declared=(),
        access=request.access,
        base_dir=request.base_dir,
        cache_dir=request.cache_dir,
    )
