"""The `runtime` schema."""

from collections.abc import Mapping

from datafusion.catalog import SchemaProvider, Table

from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import SystemTable


class SystemSchema(SchemaProvider):  # type: ignore[misc] # datafusion is untyped to us
    """The `runtime` schema: each look-up makes the table from what is known at that moment."""

    def __init__(self, system: Mapping[TableName, SystemTable]) -> None:
        self._system = system

    @property
    def owner_name(self) -> str | None:
        return None

    @property
    def table_names(self) -> list[str]:
        return sorted(self._system)

    def table(self, name: str) -> Table | None:
        import pyarrow.dataset as ds  # Here: it is slow to import, and few statements need it.

        make = self._system.get(TableName(name))
        return Table(ds.dataset(make())) if make else None

    def table_exist(self, name: str) -> bool:
        return name in self._system
