"""The table of a dataset that replicates a PostgreSQL table, before its first change."""

from caraway_core.protocols.change_sources import ChangeRequest
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import MemoryTable
from caraway_plugins.changes.postgres import catalog, connecting


class PostgresTable:
    """A source without rows that reads the columns from the database."""

    capabilities = SourceCapabilities(scan=False, changes=True)

    def resolve(self, request: SourceRequest) -> MemoryTable:
        place = connecting.place_of(
            ChangeRequest(request.name, request.connector, request.path, request.params)
        )
        connection = connecting.connect(place)
        try:
            schema = catalog.look(connection, place, request.declared, None).schema
        finally:
            connecting.close(connection)
        return MemoryTable(schema, schema.empty_table())

    def fingerprint(self, request: SourceRequest) -> str | None:
        return None
