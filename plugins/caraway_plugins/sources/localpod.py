"""Datasets that are another dataset or view of the same runtime: `from: localpod:NAME`."""

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.sqltext.expanding import quoted
from caraway_core.tables import ViewTable
from caraway_plugins.sources import params


class LocalDataset:
    """A dataset over another one; the engine reads that as it reads a view of it."""

    capabilities = SourceCapabilities(projection=True, filters=True, limit=True)

    def resolve(self, request: SourceRequest) -> ViewTable:
        params.checked(request.connector, request.params)
        name = request.path.strip()
        if not all(name.split(".")):
            raise DatasetError(
                "invalid", f"dataset '{request.name}': write 'localpod:' and the name of a dataset"
            )
        if request.declared:
            raise DatasetError(
                "unsupported",
                f"dataset '{request.name}': the columns of '{name}' have their types from it; "
                "leave the types out, or cast in a view",
            )
        table = ".".join(map(quoted, name.split(".")))
        return ViewTable(f"SELECT * FROM {table}")

    def fingerprint(self, request: SourceRequest) -> str | None:
        return None
