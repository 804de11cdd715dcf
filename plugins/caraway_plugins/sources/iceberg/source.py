"""Datasets that are Iceberg tables: in a folder, in a bucket, or in a catalog."""

from __future__ import annotations

import time

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import TableSpec
from caraway_plugins.sources.iceberg import (
    describing,
    opening,
    planning,
    pointer_catalogs,
    pointers,
)
from caraway_plugins.sources.iceberg.writing import written

_RENEWED_S = 900.0
"""Catalogs give out credentials for an hour, and some for less."""


class IcebergSource:
    """An Iceberg table, pinned to the snapshot that is current when it is resolved."""

    capabilities = SourceCapabilities(projection=True, filters=True, limit=True, splits=True)

    def __init__(self, clock: SecondsClock = time.time) -> None:
        """Take the time, by which credentials of catalogs are renewed."""
        self._clock = clock

    def resolve(self, request: SourceRequest) -> TableSpec:
        opened = opening.open_table(request)
        metadata, files = opened.metadata, opened.files
        with opening.worded(request):
            snapshot, schema = metadata.at(request.params.get(opening.SNAPSHOT, ""))
            planned = [] if snapshot is None else planning.plan(files, metadata, snapshot)
            writer = written.written_table(request, opened)
            return describing.describe(files, metadata, schema, planned, request.declared, writer)

    def fingerprint(self, request: SourceRequest) -> str | None:
        if (path := pointers.path_of(request.path)) is not None:
            return pointer_catalogs.location(request, path)
        if not opening.is_in_catalog(request):
            place = opening.found_metadata(request, opening.table_files(request, {})).place
            status = place.find()
            return f"{place.path} {status and (status.size_bytes, status.stamp)}"
        opened = opening.of_catalog(request)
        metadata = opened.metadata
        turn = int(self._clock() // _RENEWED_S) if opened.is_temporary else 0
        with opening.worded(request):
            snapshot, schema = metadata.at(request.params.get(opening.SNAPSHOT, ""))
            columns = f"{schema.id} {len(schema.fields)}"
            return f"{metadata.uuid} {snapshot and snapshot.id} {columns} {turn}"
