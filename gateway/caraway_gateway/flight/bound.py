"""Tickets that hold a statement with the values of its parameters, so that one call asks for it.

A client makes them by itself: an IPC stream with one row of parameters, whose schema has the
statement as metadata. They begin with bytes that no text begins with.
"""

import pyarrow as pa

from caraway_serving.flight import ipc_sizes, statuses
from caraway_serving.flight.ipc_sizes import StreamTooLargeError

OFFERED = b"caraway-bound-tickets"
"""What a FlightInfo says of a statement that can be asked for like this, and has few rows."""
MOST_VALUES = 1_000_000
"""Of all columns, and of all lists in them."""
_SQL = b"caraway.sql"
_STREAM = b"\xff\xff\xff\xff"


def is_bound(ticket: bytes) -> bool:
    """Return whether a ticket is one of these."""
    return ticket.startswith(_STREAM)


def read(ticket: bytes, most_bytes: int) -> tuple[str, pa.Table]:
    """Return the statement and its row of parameters, which have at most `most_bytes` bytes.

    Raises:
        InvalidArgument: it is none of these, is too large, or has more rows.
    """
    try:
        ipc_sizes.check(ticket, most_bytes, MOST_VALUES)
        with pa.ipc.open_stream(pa.py_buffer(ticket)) as reader:
            rows = reader.read_all()
        rows.validate(full=True)
        sql = (rows.schema.metadata or {})[_SQL].decode()
    except StreamTooLargeError as exc:
        raise statuses.InvalidArgument(
            f"the parameters of the ticket are too large: {exc}; bind fewer or shorter values"
        ) from exc
    except (pa.ArrowException, OSError, KeyError, ValueError) as exc:
        raise statuses.InvalidArgument(
            "the ticket cannot be read: it has to be an IPC stream with one row of parameters, and "
            f"the statement as `{_SQL.decode()}` in the metadata of its schema"
        ) from exc
    if rows.num_rows != 1:
        raise statuses.InvalidArgument(
            f"a ticket takes one row of parameters, but this one has {rows.num_rows}"
        )
    return sql, rows
