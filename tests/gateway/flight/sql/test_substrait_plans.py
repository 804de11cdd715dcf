"""Substrait plans over Flight SQL, by the ADBC driver and by messages sent by hand."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from adbc_driver_manager import ProgrammingError
from pyarrow import flight

from caraway_gateway.flight.sql import messages
from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as proto
from tests.gateway.flight.serving import KEYS, command, serving
from tests.gateway.flight.sql.driving import act, act_raw, drive, put
from tests.gateway.flight.sql.driving import read as rows_of
from tests.kit import client_plans
from tests.kit.client_plans import plan, read
from tests.kit.engine import memory

ROWS: dict[str, Any] = {"a": [1, 2, 3], "s": ["x", None, "x"]}
TABLES = {"t": memory(**ROWS)}
T_READ = read("t", a="i64", s="string")
SQL = "SELECT s, sum(a) AS total FROM t GROUP BY s ORDER BY total"
WANTED = {"s": [None, "x"], "total": [2, 4]}


def encoded(sql: str = SQL) -> bytes:
    return client_plans.produced(sql, {"t": pa.table(ROWS)})


def asked(sent: bytes, **more: Any) -> proto.CommandStatementSubstraitPlan:
    return proto.CommandStatementSubstraitPlan(plan=proto.SubstraitPlan(plan=sent), **more)


def planned(sent: bytes, *, prepare: bool = False) -> Callable[[Any], pa.Table]:
    """Run a plan as the driver does, and prepare it first if asked."""

    def use(connection: Any) -> pa.Table:
        with connection.cursor() as cursor:
            cursor.adbc_statement.set_substrait_plan(sent)
            if prepare:
                cursor.adbc_statement.prepare()
            stream, _ = cursor.adbc_statement.execute_query()
            return pa.RecordBatchReader.from_stream(stream).read_all()

    return use


@pytest.mark.parametrize("prepare", [False, True])
async def test_the_driver_runs_a_plan(prepare: bool) -> None:
    async with serving(TABLES) as server:
        rows = await drive(server, planned(encoded(), prepare=prepare))
    assert rows.to_pydict() == WANTED


async def test_rows_and_columns_of_a_plan() -> None:
    message = asked(plan(T_READ, "first", "second"))
    async with serving(TABLES) as server:
        rows = await server.ask(rows_of(message))
        ticket = flight.Ticket(messages.packed(asked(encoded())))
        direct = await server.ask(lambda c: c.do_get(ticket).read_all())
    assert rows.to_pydict() == {"first": [1, 2, 3], "second": ["x", None, "x"]}
    assert rows.schema.types == [pa.int64(), pa.string()]
    assert direct.to_pydict() == WANTED


async def test_a_prepared_plan_tells_its_columns_and_is_closed() -> None:
    async with serving(TABLES) as server:
        request = proto.ActionCreatePreparedSubstraitPlanRequest(
            plan=proto.SubstraitPlan(plan=encoded())
        )
        (body,) = await server.ask(act("CreatePreparedSubstraitPlan", request))
        made = messages.read_as(proto.ActionCreatePreparedStatementResult, body)
        assert pa.ipc.read_schema(pa.py_buffer(made.dataset_schema)).names == ["s", "total"]
        assert made.parameter_schema == b""
        query = proto.CommandPreparedStatementQuery(
            prepared_statement_handle=made.prepared_statement_handle
        )
        assert (await server.ask(rows_of(query))).to_pydict() == WANTED
        closing = proto.ActionClosePreparedStatementRequest(
            prepared_statement_handle=made.prepared_statement_handle
        )
        await server.ask(act("ClosePreparedStatement", closing))
        with pytest.raises(KeyError, match="no such prepared statement"):
            await server.ask(rows_of(query))


async def test_an_update_with_a_plan_that_reads_counts_nothing() -> None:
    descriptor = command(messages.packed(asked(encoded())))
    async with serving(TABLES) as server:
        (body,) = await server.ask(put(descriptor, pa.table({})))
    assert messages.parse(proto.DoPutUpdateResult, body).record_count == -1


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"", "empty"),
        (b"garbage", "no substrait.Plan"),
        (plan(read("nowhere", a="i64"), "a"), "nowhere"),
        (plan({"write": {"input": T_READ}}, "a", "s"), "a plan that writes"),
        (plan({"read": {"localFiles": {"items": [{"uriFile": "/etc/passwd"}]}}}, "a"), "local_fil"),
        (b"\x1a" * (5 << 20), "more than 4194304 bytes"),
    ],
)
async def test_wrong_plans_are_invalid_arguments(sent: bytes, said: str) -> None:
    descriptor = command(messages.packed(asked(sent)))
    async with serving(TABLES, writable=("t",), keys=KEYS) as server:
        key = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer writer")])
        asks: list[Callable[[Any], Any]] = [
            lambda c: c.get_flight_info(descriptor, key),
            lambda c: c.get_schema(descriptor, key),
            lambda c: c.do_get(flight.Ticket(descriptor.command), key).read_all(),
            put(descriptor, pa.table({}), key),
        ]
        for ask in asks:
            with pytest.raises(pa.ArrowInvalid, match=said):
                await server.ask(ask)
        assert len(server.services.queries.active) == 0


async def test_the_driver_is_told_what_is_wrong() -> None:
    async with serving(TABLES) as server:
        with pytest.raises(ProgrammingError, match=r"INVALID_ARGUMENT.*no column 'b'"):
            await drive(server, planned(plan(read("t", b="i64"), "b")))


async def test_plans_in_transactions_are_not_implemented() -> None:
    async with serving(TABLES) as server:
        with pytest.raises(NotImplementedError, match="transactions"):
            await server.ask(rows_of(asked(encoded(), transaction_id=b"x")))
        with pytest.raises(pa.ArrowInvalid, match="ActionCreatePreparedSubstraitPlanRequest"):
            await server.ask(act_raw("CreatePreparedSubstraitPlan", b"x"))


async def test_a_plan_needs_a_key() -> None:
    async with serving(TABLES, keys=KEYS) as server:
        with pytest.raises(flight.FlightUnauthenticatedError):
            await server.ask(rows_of(asked(encoded())))


async def test_the_server_says_that_it_takes_plans() -> None:
    codes = [
        proto.FLIGHT_SQL_SERVER_SUBSTRAIT,
        proto.FLIGHT_SQL_SERVER_SUBSTRAIT_MIN_VERSION,
        proto.FLIGHT_SQL_SERVER_SUBSTRAIT_MAX_VERSION,
    ]
    async with serving() as server:
        rows = await server.ask(rows_of(proto.CommandGetSqlInfo(info=codes)))
    takes, oldest, newest = rows.column("value").to_pylist()
    assert takes is True
    assert [int(part) for part in oldest.split(".")] < [int(part) for part in newest.split(".")]
