"""Descriptors and tickets."""

import pytest
from pyarrow import flight

from caraway_core.ids import new_query_id
from caraway_scheduler.flight import commands
from caraway_scheduler.flight.commands import TicketText


@pytest.mark.parametrize("sql", ["SELECT 1", "SELECT 1 -- end", "SELECT 'é\n--waiting:x'"])
def test_ticket_reads_back(sql: str) -> None:
    for text in (TicketText(sql), TicketText(sql, new_query_id())):
        assert commands.read_ticket(flight.Ticket(text.encode())) == text


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1)",
        "  delete from t",
        "-- why\n/* and */ UPDATE t SET a = 1",
        "/**//**/Truncate t",
    ],
)
def test_writes_are_known_by_their_first_word(sql: str) -> None:
    assert commands.writes(sql)


@pytest.mark.parametrize(
    "sql",
    ["", "SELECT 1", "-- INSERT\nSELECT 1", "/* INSERT */ SELECT 1", "inserted", "/**/" * 5_000],
)
def test_everything_else_is_no_write(sql: str) -> None:
    assert not commands.writes(sql)
