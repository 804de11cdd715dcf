"""Statements that are asked for, with their parameters, by one call."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway import bound_rows
from caraway_core.tables import TableSpec
from caraway_scheduler.flight import bound
from caraway_serving.flight.statuses import InvalidArgument
from tests.kit.engine import memory
from tests.scheduler.flight.serving import command, serving

TABLES: dict[str, TableSpec | str] = {"t": memory(a=[1, 2, 3], s=["x", None, "z"])}


def asked(sql: str, parameters: Any) -> bytes:
    return bound_rows.ticket(sql, bound_rows.row(parameters))


def got(ticket: bytes) -> Any:
    return lambda connected: connected.do_get(flight.Ticket(ticket)).read_all()


@pytest.mark.parametrize(
    ("sql", "parameters", "rows"),
    [
        ("SELECT s FROM t WHERE a = ?", [3], [{"s": "z"}]),
        ("SELECT :n AS n, $d AS d", {"d": dt.date(2024, 2, 29), "n": b"\xff"},
         [{"n": b"\xff", "d": dt.date(2024, 2, 29)}]),
        ("SELECT a FROM t WHERE s = $1 OR $1 = '; DROP TABLE t' ORDER BY a", ["; DROP TABLE t"],
         [{"a": 1}, {"a": 2}, {"a": 3}]),
        ("SELECT a FROM t WHERE a > $1", [9], []),
    ],
)  # fmt: skip
async def test_statement_and_parameters_come_in_one_ticket(
    sql: str, parameters: Any, rows: list[dict[str, Any]]
) -> None:
    async with serving(TABLES) as server:
        assert (await server.ask(got(asked(sql, parameters)))).to_pylist() == rows
        await server.idle()


async def test_statement_that_may_be_asked_for_like_this_is_marked() -> None:
    def info(sql: str) -> Any:
        return lambda connected: connected.get_flight_info(command(sql)).app_metadata

    async with serving(TABLES, writable=("t",)) as server:
        assert await server.ask(info("SELECT 1")) == bound.OFFERED
        assert await server.ask(info("INSERT INTO t VALUES (4, 'u')")) == b""
        count = await server.ask(got(b"SELECT count(*) AS n FROM t"))
        assert count.to_pylist() == [{"n": 3}]


@pytest.mark.parametrize(
    ("ticket", "says"),
    [
        (b"\xff\xff\xff\xff", "cannot be read"),
        (b"\xff\xff\xff\xff" + b"\x00" * 64, "cannot be read"),
        (b"\xff\xff\xff\xff\xff\xff\xff\x7f" + b"x" * 64, "cannot be read"),
        (asked("SELECT $1", [1])[:-120], "cannot be read"),
        (asked("SELECT $1", [1]).replace(b"caraway.sql", b"caraway.sqx"), "cannot be read"),
        (asked("SELECT $1, $2", [1]), "2 parameters, but 1 columns"),
        (asked("SELECT 1", [1]), "0 parameters, but 1 columns"),
        (asked("SELECT $1 FROM nowhere", [1]), "nowhere"),
    ],
)
async def test_whatever_else_is_sent_is_refused(ticket: bytes, says: str) -> None:
    async with serving(TABLES) as server:
        with pytest.raises(pa.ArrowInvalid, match=says):
            await server.ask(got(ticket))
        assert (await server.ask(got(b"SELECT 1 AS a"))).to_pylist() == [{"a": 1}]


def test_ticket_has_exactly_one_row() -> None:
    row = bound_rows.row([1])
    two = pa.concat_batches([row, row])
    for rows in (two, row.slice(1)):
        with pytest.raises(InvalidArgument, match=f"this one has {rows.num_rows}"):
            bound.read(bound_rows.ticket("SELECT $1", rows))


def test_every_damaged_ticket_is_refused_or_read() -> None:
    whole = asked("SELECT $1, $2, $3", ["text", [1, None], None])
    for place in range(4, len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        try:
            bound.read(bytes(damaged))
        except InvalidArgument:
            continue
