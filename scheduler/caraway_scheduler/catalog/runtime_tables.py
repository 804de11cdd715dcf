"""The tables `runtime.functions`, `runtime.descriptions` and `runtime.catalog_tables`."""

from collections.abc import Iterable, Mapping
from itertools import chain

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.manifest import Dataset, View
from caraway_core.sqltext.sql_functions import SqlFunction
from caraway_scheduler.catalog.source_catalog_states import SourceCatalogState
from caraway_scheduler.catalog.states import DatasetState, ViewState

_TEXT = pa.string()
FUNCTIONS = pa.schema(
    [
        pa.field("name", _TEXT, nullable=False),
        pa.field("kind", _TEXT, nullable=False),
        pa.field("volatility", _TEXT, nullable=False),
        pa.field("signature", _TEXT, nullable=False),
        pa.field("description", _TEXT),
        pa.field("as_tool", pa.bool_(), nullable=False),
    ]
)
_PUBLIC = "public"
DESCRIPTIONS = pa.schema(
    [
        pa.field("table_schema", _TEXT, nullable=False),
        pa.field("table_name", _TEXT, nullable=False),
        pa.field("column_name", _TEXT),
        pa.field("description", _TEXT, nullable=False),
    ]
)
CATALOG_TABLES = pa.schema(
    [
        pa.field("table_catalog", _TEXT, nullable=False),
        pa.field("table_schema", _TEXT, nullable=False),
        pa.field("table_name", _TEXT, nullable=False),
    ]
)


def functions_table(functions: Iterable[SqlFunction]) -> pa.Table:
    """Return the content of the table."""
    rows = [{name: getattr(each, name) for name in FUNCTIONS.names} for each in functions]
    return pa.Table.from_pylist(rows, schema=FUNCTIONS)


def descriptions_table(
    datasets: Mapping[TableName, DatasetState], views: Mapping[TableName, ViewState]
) -> pa.Table:
    """Return the content of the table. A row without a column describes the table itself."""
    # Statements call this in threads while the manifest may change.
    named: Iterable[Dataset | View] = chain(
        (state.dataset for state in dict(datasets).values()),
        (state.view for state in dict(views).values()),
    )
    rows = [
        row for each in sorted(named, key=lambda each: each.name) for row in _descriptions(each)
    ]
    return pa.Table.from_pylist(rows, schema=DESCRIPTIONS)


def _descriptions(named: Dataset | View) -> Iterable[dict[str, str | None]]:
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


def catalog_tables(states: Mapping[str, SourceCatalogState]) -> pa.Table:
    """Return the content of the table."""
    # Statements call this in threads while the manifest may change.
    found = [
        (name, each.schema, each.name)
        for name, state in sorted(dict(states).items())
        for each in list(state.listed.values())
    ]
    columns = zip(*found, strict=True) if found else ((), (), ())
    return pa.table([pa.array(each, _TEXT) for each in columns], schema=CATALOG_TABLES)
