"""The table `runtime.functions`: the functions of the manifest."""

from collections.abc import Iterable

import pyarrow as pa

from caraway_core.sqltext.sql_functions import SqlFunction

_TEXT = pa.string()
SCHEMA = pa.schema(
    [
        pa.field("name", _TEXT, nullable=False),
        pa.field("kind", _TEXT, nullable=False),
        pa.field("volatility", _TEXT, nullable=False),
        pa.field("signature", _TEXT, nullable=False),
        pa.field("description", _TEXT),
        pa.field("as_tool", pa.bool_(), nullable=False),
    ]
)


def table(functions: Iterable[SqlFunction]) -> pa.Table:
    """Return the content of the table."""
    rows = [{name: getattr(each, name) for name in SCHEMA.names} for each in functions]
    return pa.Table.from_pylist(rows, schema=SCHEMA)
