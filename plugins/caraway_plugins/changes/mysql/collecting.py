"""Row changes of one table, as values of the binary log, and their conversion to `Changes`."""

import datetime as dt
import decimal
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from caraway_core.changes import Changes, Op, log_schema
from caraway_core.errors import DatasetError
from caraway_plugins.changes.mysql.looking import FollowedColumn, FollowedTable
from caraway_plugins.sources.mysql import decoding

Row = Mapping[str, Any]
_NO_TIME = dt.datetime(1970, 1, 1)
"""The value in the log of a TIMESTAMP of zeros, which is out of its range."""
_NO_YEAR = 1900


def changes(table: FollowedTable, found: Sequence[tuple[Op, Row]], received: int) -> Changes:
    """Convert changes.

    Raises:
        DatasetError: a value does not fit its column.
    """
    columns = [
        pa.array([_text(row.get(each.field.name), each) for _, row in found], pa.large_binary())
        for each in table.columns
    ]
    return of_texts(table, columns, [op for op, _ in found], received)


def of_texts(
    table: FollowedTable, columns: Sequence[pa.Array], ops: Sequence[int], received: int
) -> Changes:
    """Convert columns with the texts of the server.

    Raises:
        DatasetError: a value does not fit its column.
    """
    arrays = []
    for values, column in zip(columns, table.columns, strict=True):
        try:
            arrays.append(decoding.typed(values, column.field.type))
        except (pa.ArrowException, ValueError) as exc:
            raise DatasetError(
                "schema",
                f"{table.title}: a value of column '{column.field.name}' is not a "
                f"{column.field.type}; declare the column under 'columns' with a type that fits",
            ) from exc
    arrays += [pa.array(map(int, ops), pa.int8()), pa.nulls(len(ops), pa.binary())]
    return Changes(pa.Table.from_arrays(arrays, schema=log_schema(table.schema)), received)


def _text(value: object, column: FollowedColumn) -> bytes | None:
    """Return a value as the server writes it as text."""
    match value:
        case None:
            return None
        case bytes():
            # The log leaves out the zeros at the end of BINARY.
            return value.ljust(column.padded, b"\0")
        case str():
            return value.encode().ljust(column.padded, b"\0")
        case decimal.Decimal():
            return f"{value:f}".encode()
        case dt.datetime():
            is_time = value != _NO_TIME or not column.written.lower().startswith("timestamp")
            return value.isoformat(" ").encode() if is_time else b"0000-00-00"
        case dt.date():
            return value.isoformat().encode()
        case int() if column.written.lower().startswith("year"):
            return f"{0 if value == _NO_YEAR else value:04d}".encode()
        case int() | float():
            return repr(value).encode()
    raise DatasetError(
        "unsupported",
        f"changes of column '{column.field.name}' are not followed; list the other columns under "
        "'columns'",
    )
