"""The table `runtime.descriptions`: what the manifest says of datasets, views and their columns."""

from collections.abc import Iterable, Mapping
from itertools import chain

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.manifest import Dataset, View
from caraway_scheduler.catalog.states import DatasetState, ViewState

_PUBLIC = "public"
_TEXT = pa.string()
SCHEMA = pa.schema(
    [
        pa.field("table_schema", _TEXT, nullable=False),
        pa.field("table_name", _TEXT, nullable=False),
        pa.field("column_name", _TEXT),
        pa.field("description", _TEXT, nullable=False),
    ]
)


def table(
    datasets: Mapping[TableName, DatasetState], views: Mapping[TableName, ViewState]
) -> pa.Table:
    """Return the content of the table. A row without a column describes the table itself."""
    # Statements call this in threads while the manifest may change.
    named: Iterable[Dataset | View] = chain(
        (state.dataset for state in dict(datasets).values()),
        (state.view for state in dict(views).values()),
    )
    rows = [row for each in sorted(named, key=lambda each: each.name) for row in _rows(each)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _rows(named: Dataset | View) -> Iterable[dict[str, str | None]]:
    schema, _, name = named.name.rpartition(".")
    columns = ((each.name, each.description) for each in named.columns)
    for column, description in chain([(None, named.description)], columns):
        if description:
            yield {
                "table_schema": schema or _PUBLIC,
                "table_name": name,
                "column_name": column,
                "description": description,
            }
