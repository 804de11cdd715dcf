"""Finds tables in catalogs that only know where their metadata are."""

from __future__ import annotations

from typing import cast

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.iceberg.pointers import MovingCatalog, PointerCatalog, PointerPath


def catalog_of(path: PointerPath) -> PointerCatalog:
    """Return the catalogs of a kind. Imports what it needs."""
    if path.kind == "glue":
        from caraway_plugins.sources.iceberg.glue import GlueCatalog

        return GlueCatalog()
    if path.kind == "hive":
        from caraway_plugins.sources.iceberg.hive import HiveCatalog

        return HiveCatalog()
    from caraway_plugins.sources.iceberg.sql_catalogs import SqlCatalog

    return SqlCatalog()


def moving_catalog(path: PointerPath) -> MovingCatalog | None:
    """Return the catalogs of a kind in which tables are moved; None: they are only read."""
    return None if path.kind == "hive" else cast("MovingCatalog", catalog_of(path))


def location(request: SourceRequest, path: PointerPath) -> str:
    """Return the location of the newest metadata of a table.

    Raises:
        DatasetError: no table is named, it is not there, or the catalog cannot be read.
    """
    if not path.table:
        raise DatasetError(
            "invalid", f"the path names no table; write it as {path.kind}://NAMESPACE/TABLE"
        )
    return catalog_of(path).location(request, path)
