"""Tables that statements create or drop in the databases of source catalogs."""

from dataclasses import dataclass

from caraway_core.ids import TableName
from caraway_core.releases.protocol_versions import growing
from caraway_core.tables import RemoteTable


@growing
@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table that a statement creates with its rows, or drops.

    `table` says where it is, and has no columns: a new table gets those of the statement.
    `required` are the columns without NULL.
    """

    name: TableName
    table: RemoteTable
    is_dropped: bool = False
    required: tuple[str, ...] = ()
    primary_key: tuple[str, ...] = ()

    @property
    def verb(self) -> str:
        return "DROP TABLE" if self.is_dropped else "CREATE TABLE"
