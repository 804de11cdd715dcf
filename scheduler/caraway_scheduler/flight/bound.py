"""Tickets that hold a statement with the values of its parameters, so that one call asks for it.

A client makes them by itself: an IPC stream with one row of parameters, whose schema has the
statement as metadata. They begin with bytes that no text begins with.
"""

import pyarrow as pa

from caraway_serving.flight import statuses

OFFERED = b"caraway-bound-tickets"
"""What a FlightInfo says of a statement that can be asked for like this, and has few rows."""
_SQL = b"caraway.sql"
_STREAM = b"\xff\xff\xff\xff"


def is_bound(ticket: bytes) -> bool:
    """Return whether a ticket is one of these."""
    return ticket.startswith(_STREAM)


def read(ticket: bytes) -> tuple[str, pa.Table]:
    """Return the statement and its row of parameters.

    Raises:
        InvalidArgument: it is none of these, or has more rows.
    """
    try:
        with pa.ipc.open_stream(pa.py_buffer(ticket)) as reader:
            rows = reader.read_all()
        rows.validate(full=True)
        sql = (rows.schema.metadata or {})[_SQL].decode()
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
