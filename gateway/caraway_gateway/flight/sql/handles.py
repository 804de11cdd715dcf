"""Tickets of statements: what has to be run, and the answer to it that waits."""

import json
from dataclasses import dataclass

from caraway_core.ids import QueryId
from caraway_core.json_texts import strict_json
from caraway_gateway.flight.sql import messages
from caraway_gateway.flight.sql.protocol.FlightSql_pb2 import TicketStatementQuery
from caraway_serving.flight import statuses


@dataclass(frozen=True, slots=True)
class StatementHandle:
    """A statement, or a prepared one by its handle, and the id under which its answer may wait."""

    sql: str = ""
    prepared: str = ""
    query_id: QueryId | None = None

    def encode(self) -> bytes:
        """Return the ticket."""
        document = {"sql": self.sql, "prepared": self.prepared, "waiting": self.query_id}
        handle = json.dumps({key: value for key, value in document.items() if value})
        return messages.packed(TicketStatementQuery(statement_handle=handle.encode()))


def read(handle: bytes) -> StatementHandle:
    """Return what a ticket says.

    Raises:
        InvalidArgument: it is none of ours.
    """
    try:
        document = strict_json.parse(handle)
        sql = document.get("sql", "")
        prepared = document.get("prepared", "")
        query_id = document.get("waiting")
    except (ValueError, AttributeError) as exc:
        raise _garbage() from exc
    if not all(isinstance(each, str) for each in (sql, prepared, query_id or "")):
        raise _garbage()
    if not sql and not prepared:
        raise _garbage()
    return StatementHandle(sql, prepared, QueryId(query_id) if query_id else None)


def _garbage() -> statuses.InvalidArgument:
    return statuses.InvalidArgument("the ticket was not made by this runtime; ask for a new one")
