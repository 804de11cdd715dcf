"""The table `runtime.catalog_tables`: the names of all tables of source catalogs."""

from collections.abc import Mapping

import pyarrow as pa

from caraway_scheduler.catalog.source_catalog_states import SourceCatalogState

_TEXT = pa.string()
SCHEMA = pa.schema(
    [
        pa.field("table_catalog", _TEXT, nullable=False),
        pa.field("table_schema", _TEXT, nullable=False),
        pa.field("table_name", _TEXT, nullable=False),
    ]
)


def table(states: Mapping[str, SourceCatalogState]) -> pa.Table:
    """Return the content of the table."""
    # Statements call this in threads while the manifest may change.
    found = [
        (name, each.schema, each.name)
        for name, state in sorted(dict(states).items())
        for each in list(state.listed.values())
    ]
    columns = zip(*found, strict=True) if found else ((), (), ())
    return pa.table([pa.array(each, _TEXT) for each in columns], schema=SCHEMA)
