"""Tickets of statements: written tickets can be read, and those that others send are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.ids import QueryId
from caraway_gateway.flight.sql import handles, messages
from caraway_gateway.flight.sql.handles import StatementHandle
from caraway_gateway.flight.sql.protocol.FlightSql_pb2 import TicketStatementQuery
from caraway_serving.flight import statuses

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(TEXT | st.just(""), TEXT | st.just(""), st.none() | TEXT.map(QueryId))
def test_a_ticket_is_read_as_it_was_written(
    sql: str, prepared: str, query_id: QueryId | None
) -> None:
    made = StatementHandle(sql, prepared, query_id)
    ticket = messages.read_as(TicketStatementQuery, made.encode())
    if sql or prepared:
        assert handles.read(ticket.statement_handle) == made
    else:
        with pytest.raises(statuses.InvalidArgument):
            handles.read(ticket.statement_handle)


@pytest.mark.parametrize(
    "handle",
    [
        b"", b"x", b"null", b"1", b'"x"', b"[]", b"{}", b"\xff", b'{"waiting": "q"}',
        b'{"sql": 1}', b'{"sql": ["x"]}', b'{"sql": "x", "waiting": 1}', b'{"prepared": {}}',
        b'{"sql": "\\ud800"}', b'{"sql": "x", "sql": "y"}', b"[" * 100_000, b'{"sql":' * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_ticket_is_refused(handle: bytes) -> None:
    with pytest.raises(statuses.InvalidArgument, match="the ticket was not made by this runtime"):
        handles.read(handle)
