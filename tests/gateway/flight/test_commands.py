"""Descriptors and tickets."""

import pytest
from pyarrow import flight

from caraway_core.ids import new_query_id
from caraway_gateway.flight import commands
from caraway_gateway.flight.commands import TicketText


@pytest.mark.parametrize("sql", ["SELECT 1", "SELECT 1 -- end", "SELECT 'é\n--waiting:x'"])
def test_ticket_reads_back(sql: str) -> None:
    for text in (TicketText(sql), TicketText(sql, new_query_id())):
        assert commands.read_ticket(flight.Ticket(text.encode())) == text
