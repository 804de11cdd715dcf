"""Statements that one call requests together with their parameters."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from caraway.flight import bound_rows
from caraway_core.tables import TableSpec
from caraway_gateway.flight import bound
from caraway_serving.flight.statuses import InvalidArgument
from tests.gateway.flight.serving import command, serving
from tests.kit.engine import memory

_MOST_BYTES = 1024 * 1024
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
            bound.read(bound_rows.ticket("SELECT $1", rows), _MOST_BYTES)


def test_every_damaged_ticket_is_refused_or_read() -> None:
    whole = asked("SELECT $1, $2, $3", ["text", [1, None], None])
    for place in range(4, len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        try:
            bound.read(bytes(damaged), _MOST_BYTES)
        except InvalidArgument:
            continue


def _packed(rows: pa.RecordBatch, codec: str | None = "zstd") -> bytes:
    """Return the ticket of a client that compresses its buffers."""
    rows = rows.replace_schema_metadata({"caraway.sql": "SELECT $1"})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


def _list_of(values: pa.Array) -> pa.RecordBatch:
    offsets = pa.array([0, len(values)], pa.int32())
    return pa.record_batch({"1": pa.ListArray.from_arrays(offsets, values)})


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
@pytest.mark.parametrize(
    "row",
    [
        pa.record_batch({"1": ["x" * (2 * _MOST_BYTES)]}),
        pa.record_batch({"1": pa.array(["x" * (2 * _MOST_BYTES)]).dictionary_encode()}),
        pa.record_batch({f"{place}": ["x" * (_MOST_BYTES // 8)] for place in range(1, 20)}),
        _list_of(pa.array(bytes(200_000), pa.uint8()).cast(pa.int64())),
    ],
)
def test_ticket_that_becomes_too_large_is_refused_before_it_is_decompressed(
    row: pa.RecordBatch, codec: str
) -> None:
    ticket = _packed(row, codec)
    assert len(ticket) < 64 * 1024
    with pytest.raises(InvalidArgument, match="at most 1048576 are allowed; bind fewer"):
        bound.read(ticket, _MOST_BYTES)


def test_ticket_is_not_decompressed_to_learn_how_large_it_becomes() -> None:
    size = 2 * _MOST_BYTES + 12_345
    ticket = _packed(pa.record_batch({"1": ["x" * size]}))
    # No machine could take that much, so nothing but its size is read.
    says_more = ticket.replace(size.to_bytes(8, "little"), (2**60).to_bytes(8, "little"))
    assert says_more != ticket
    with pytest.raises(InvalidArgument, match=f"becomes {2**60 // 10_000}"):
        bound.read(says_more, _MOST_BYTES)


def test_ticket_may_have_many_values_without_bytes_only_up_to_a_limit() -> None:
    with pytest.raises(InvalidArgument, match="values, but at most"):
        bound.read(_packed(_list_of(pa.nulls(2**30)), None), _MOST_BYTES)


@pytest.mark.parametrize("codec", ["zstd", "lz4", None])
def test_compressed_ticket_is_read(codec: str | None) -> None:
    row = _list_of(pa.array(["x" * 1000, None, "y"] * 100))
    sql, rows = bound.read(_packed(row, codec), _MOST_BYTES)
    assert (sql, rows.to_pylist()) == ("SELECT $1", row.to_pylist())


def test_every_damaged_compressed_ticket_is_refused_or_read() -> None:
    whole = _packed(_list_of(pa.array(["x" * 1000, None, "y"])))
    for place in range(4, len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        try:
            bound.read(bytes(damaged), _MOST_BYTES)
        except InvalidArgument:
            continue
