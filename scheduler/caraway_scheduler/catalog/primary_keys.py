"""The table `runtime.primary_keys`: the columns that identify the rows of datasets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_scheduler.catalog.states import DatasetState

_PUBLIC = "public"
_TEXT, _NUMBER = pa.string(), pa.int32()
SCHEMA = pa.schema(
    [
        pa.field("table_schema", _TEXT, nullable=False),
        pa.field("table_name", _TEXT, nullable=False),
        pa.field("column_name", _TEXT, nullable=False),
        pa.field("ordinal_position", _NUMBER, nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a primary key. `ordinal_position` counts from 1."""

    table_schema: str
    table_name: str
    column_name: str
    ordinal_position: int


def columns(datasets: Mapping[TableName, DatasetState]) -> Iterable[KeyColumn]:
    """Yield the columns of all primary keys, by dataset and position in the key."""
    # Statements call this in threads while the manifest may change.
    for name, state in sorted(dict(datasets).items()):
        keys = state.version.keys if state.version is not None else None
        schema, _, table = name.rpartition(".")
        for position, column in enumerate(keys.primary if keys is not None else (), start=1):
            yield KeyColumn(schema or _PUBLIC, table, column, position)


def table(datasets: Mapping[TableName, DatasetState]) -> pa.Table:
    """Return the content of the table."""
    rows = [{name: getattr(column, name) for name in SCHEMA.names} for column in columns(datasets)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)
