"""The table that is written to, as a value, and the request that opens it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import RemoteTable
from caraway_plugins.iceberg import read_schemas
from caraway_plugins.iceberg.column_types import IcebergSchema
from caraway_plugins.sources.iceberg import opening, pointer_catalogs, pointers
from caraway_plugins.sources.iceberg.opening import OpenedTable

READER = "iceberg"


def written_table(request: SourceRequest, opened: OpenedTable) -> RemoteTable | None:
    """Return the table for its writer; None if it is only read, or nothing commits its snapshots.

    A folder has no catalog, and statements do not change the past.
    """
    if request.access != "read_write" or request.params.get(opening.SNAPSHOT):
        return None
    pointer = pointers.path_of(request.path)
    if not opening.is_in_catalog(request) and (
        pointer is None or pointer_catalogs.moving_catalog(pointer) is None
    ):
        return None
    return remote_table(request, columns(opened.metadata.schema()))


def remote_table(request: SourceRequest, schema: pa.Schema) -> RemoteTable:
    """Return a table with these columns for the writer."""
    login = {
        "name": str(request.name),
        "connector": request.connector,
        "path": request.path,
        "params": json.dumps(dict(request.params)),
        "base_dir": str(request.base_dir),
        "cache_dir": str(request.cache_dir),
    }
    return RemoteTable(schema, READER, (str(request.name),), (), login)


def columns(schema: IcebergSchema) -> pa.Schema:
    """Return the columns of a table."""
    return pa.schema([(each.name, read_schemas.arrow_type(each.type)) for each in schema.fields])


def request_of(table: RemoteTable) -> SourceRequest:
    """Return the request that opens a table."""
    login = table.login
    return SourceRequest(
        TableName(login["name"]),
        login["connector"],
        login["path"],
        json.loads(login["params"]),
        (),
        "read_write",
        Path(login["base_dir"]),
        Path(login["cache_dir"]),
    )
