"""Datasets whose rows arrive only as change events that clients send."""

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import MemoryTable
from caraway_plugins.changes import registry
from caraway_plugins.sources import params


class Pushed:
    """A source without rows: the empty table of a dataset before its first change."""

    capabilities = SourceCapabilities(scan=False, changes=True)

    def resolve(self, request: SourceRequest) -> MemoryTable:
        params.checked(request.connector, request.params)
        try:
            registry.of_params(request.params)
        except ValueError as exc:
            raise DatasetError("invalid", f"params: {exc}") from exc
        return without_rows(request.name, request.declared)

    def fingerprint(self, request: SourceRequest) -> str | None:
        return None


def without_rows(name: str, columns: tuple[pa.Field, ...]) -> MemoryTable:
    """Return an empty table with the declared columns.

    Raises:
        DatasetError: no columns are declared; they come from the first events.
    """
    if not columns:
        raise DatasetError(
            "unavailable",
            f"dataset '{name}' declares no columns: they come from its first events, and none has "
            "arrived yet; send events, or declare 'columns'",
        )
    schema = pa.schema(columns)
    return MemoryTable(schema, schema.empty_table())
