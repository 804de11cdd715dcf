"""Messages of the protocol, as drivers other than one of Python send them."""

from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import Message
from pyarrow import flight

from caraway_core.ids import PrincipalId
from caraway_core.sqltext import placeholders
from caraway_core.tables import TableSpec
from caraway_gateway.flight.sql import messages, metadata_schemas, sql_info
from caraway_gateway.flight.sql.prepared import IDLE_S, PreparedStatement, PreparedStatements
from caraway_gateway.flight.sql.protocol import Flight_pb2 as wire
from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as proto
from caraway_serving.flight.statuses import NotFound, Unavailable
from tests.gateway.flight.serving import KEYS, bearer, command, serving
from tests.gateway.flight.sql.driving import act, act_raw, put, read
from tests.kit.engine import memory

TABLES: dict[str, TableSpec | str] = {
    "t": memory(a=[1, 2]),
    "v": "SELECT a FROM t",
    "sales.o_x": memory(id=[1]),
}
READER, WRITER = bearer("reader"), bearer("writer")


def asked(message: Message) -> flight.FlightDescriptor:
    return command(messages.packed(message))


def table(name: str, **fields: Any) -> Any:
    return proto.CommandGetTables(table_name_filter_pattern=name, **fields)


async def names(message: Any, column: str) -> list[str]:
    async with serving(TABLES) as server:
        rows = await server.ask(read(message))
    found: list[str] = rows.column(column).to_pylist()
    return found


@pytest.mark.parametrize(
    ("message", "column", "found"),
    [
        (proto.CommandGetCatalogs(), "catalog_name", ["caraway"]),
        (proto.CommandGetDbSchemas(catalog="caraway", db_schema_filter_pattern="s_les"),
         "db_schema_name", ["sales"]),
        (proto.CommandGetDbSchemas(catalog="other"), "db_schema_name", []),
        (proto.CommandGetTableTypes(), "table_type", ["TABLE", "VIEW"]),
        (table("t"), "table_name", ["t"]),
        (table("%x"), "table_name", ["o_x"]),
        (table("o\\_x"), "table_name", ["o_x"]),
        (table("o\\_%", db_schema_filter_pattern="public"), "table_name", []),
        (table("_", table_types=["VIEW"]), "table_name", ["v"]),
        (table("_", table_types=["TABLE"]), "table_name", ["t"]),
        (table("t", catalog=""), "table_name", []),
        (proto.CommandGetPrimaryKeys(table="t"), "column_name", []),
        (proto.CommandGetExportedKeys(table="t"), "pk_table_name", []),
        (proto.CommandGetImportedKeys(table="t"), "pk_table_name", []),
        (proto.CommandGetCrossReference(pk_table="t", fk_table="v"), "pk_table_name", []),
        (proto.CommandGetXdbcTypeInfo(data_type=proto.XDBC_VARCHAR), "type_name", ["VARCHAR"]),
    ],
)  # fmt: skip
async def test_metadata(message: Any, column: str, found: list[str]) -> None:
    assert await names(message, column) == found


async def test_tables_with_their_columns() -> None:
    async with serving(TABLES) as server:
        rows = await server.ask(read(table("v", include_schema=True)))
    (encoded,) = rows.column("table_schema").to_pylist()
    assert pa.ipc.read_schema(pa.py_buffer(encoded)) == pa.schema([("a", pa.int64())])


async def test_sql_info_answers_every_code_of_the_protocol() -> None:
    assert set(sql_info.values()) == set(proto.SqlInfo.values())
    async with serving() as server:
        every = await server.ask(read(proto.CommandGetSqlInfo()))
        some = await server.ask(read(proto.CommandGetSqlInfo(info=[0, 504, 9_999])))
    assert every.num_rows == len(proto.SqlInfo.values())
    assert some.to_pydict() == {"info_name": [0, 504], "value": ["Caraway", '"']}
    assert every.schema == metadata_schemas.SQL_INFO


async def test_statement_is_run_by_the_ticket() -> None:
    async with serving(TABLES) as server:
        query = proto.CommandStatementQuery(query="SELECT a FROM t ORDER BY a")
        assert (await server.ask(read(query))).to_pydict() == {"a": [1, 2]}
        await server.idle()


async def test_update_by_put_answers_the_count() -> None:
    async with serving({"t": memory(a=[1])}, writable=("t",), keys=KEYS) as server:
        update = asked(proto.CommandStatementUpdate(query="INSERT INTO t VALUES (2), (3)"))
        (said,) = await server.ask(put(update, pa.table({}), WRITER))
        assert messages.parse(proto.DoPutUpdateResult, said).record_count == 2
        with pytest.raises(flight.FlightUnauthorizedError, match="read-only"):
            await server.ask(put(update, pa.table({}), READER))


async def prepare(server: Any, sql: str, options: Any = WRITER) -> Any:
    asked_for = proto.ActionCreatePreparedStatementRequest(query=sql)
    (body,) = await server.ask(act("CreatePreparedStatement", asked_for, options))
    return messages.read_as(proto.ActionCreatePreparedStatementResult, body)


async def test_prepared_statement_from_begin_to_end() -> None:
    async with serving(TABLES, keys=KEYS) as server:
        made = await prepare(server, "SELECT a FROM t WHERE a > $1")
        columns = pa.ipc.read_schema(pa.py_buffer(made.dataset_schema))
        assert columns == pa.schema([("a", pa.int64())])
        assert pa.ipc.read_schema(pa.py_buffer(made.parameter_schema)).names == ["$1"]
        handle = {"prepared_statement_handle": made.prepared_statement_handle}
        query = proto.CommandPreparedStatementQuery(**handle)
        await server.ask(put(asked(query), pa.table({"$1": [1]}), WRITER))
        for _ in range(2):
            assert (await server.ask(read(query, WRITER))).to_pydict() == {"a": [2]}
        await server.ask(put(asked(query), pa.table({"$1": [1, 2]}), WRITER))
        with pytest.raises(pa.ArrowInvalid, match="one row of parameters, but 2"):
            await server.ask(read(query, WRITER))
        # Another key knows nothing of it.
        with pytest.raises(KeyError, match="no such prepared statement"):
            await server.ask(read(query, READER))
        close = proto.ActionClosePreparedStatementRequest(**handle)
        await server.ask(act("ClosePreparedStatement", close, READER))
        await server.ask(put(asked(query), pa.table({"$1": [1]}), WRITER))
        assert await server.ask(act("ClosePreparedStatement", close, WRITER)) == []
        with pytest.raises(KeyError, match="no such prepared statement"):
            await server.ask(read(query, WRITER))


@pytest.mark.parametrize("has_parameters", [False, True])
async def test_ticket_outlives_its_statement_if_it_needs_no_parameters(
    has_parameters: bool,
) -> None:
    async with serving(TABLES, keys=KEYS) as server:
        end = "$1" if has_parameters else "1000000"
        made = await prepare(server, f"SELECT value FROM generate_series(1, {end})")
        handle = {"prepared_statement_handle": made.prepared_statement_handle}
        query = asked(proto.CommandPreparedStatementQuery(**handle))
        if has_parameters:
            await server.ask(put(query, pa.table({"$1": [1_000_000]}), WRITER))
        info = await server.ask(lambda c: c.get_flight_info(query, WRITER))
        ticket = info.endpoints[0].ticket
        rows = await server.ask(lambda c: c.do_get(ticket, WRITER).read_all())
        assert rows.num_rows == 1_000_000
        close = proto.ActionClosePreparedStatementRequest(**handle)
        await server.ask(act("ClosePreparedStatement", close, WRITER))
        if has_parameters:
            with pytest.raises(KeyError, match="no such prepared statement"):
                await server.ask(lambda c: c.do_get(ticket, WRITER).read_all())
        else:
            rows = await server.ask(lambda c: c.do_get(ticket, WRITER).read_all())
            assert rows.num_rows == 1_000_000


def test_prepared_statements_are_bounded_and_expire() -> None:
    now = 0.0
    kept = PreparedStatements(most=2, most_bytes=1_000, clock=lambda: now)
    found = placeholders.find("SELECT $1")

    def made(principal: str) -> PreparedStatement:
        return PreparedStatement("SELECT $1", PrincipalId(principal), found)

    first, _ = kept.add(made("a")), kept.add(made("a"))
    with pytest.raises(Unavailable, match="2 prepared statements"):
        kept.add(made("a"))
    kept.add(made("b"))
    with pytest.raises(Unavailable, match="MiB"):
        kept.bind(first, PrincipalId("a"), pa.table({"x": list(range(1_000))}))
    now = IDLE_S + 1
    with pytest.raises(NotFound):
        kept.find(first, PrincipalId("a"))
    assert len(kept) == 0


async def test_ticket_of_another_key_gives_what_the_own_key_may() -> None:
    insert = asked(proto.CommandStatementQuery(query="INSERT INTO t VALUES (3)"))
    select = asked(proto.CommandStatementQuery(query="SELECT count(*) AS n FROM t"))
    async with serving({"t": memory(a=[1])}, writable=("t",), keys=KEYS) as server:

        def ticket(descriptor: flight.FlightDescriptor) -> Any:
            return lambda c: c.get_flight_info(descriptor, WRITER).endpoints[0].ticket

        writing, reading = await server.ask(ticket(insert)), await server.ask(ticket(select))
        with pytest.raises(flight.FlightUnauthorizedError, match="read-only"):
            await server.ask(lambda c: c.do_get(writing, READER).read_all())
        rows = await server.ask(lambda c: c.do_get(reading, READER).read_all())
        assert rows.to_pydict() == {"n": [1]}
        # The answer of the other key still waits for its own ticket.
        rows = await server.ask(lambda c: c.do_get(reading, WRITER).read_all())
        assert rows.to_pydict() == {"n": [1]}


@pytest.mark.parametrize(
    "ticket",
    [
        messages.packed(proto.TicketStatementQuery(statement_handle=b"\xff")),
        messages.packed(proto.TicketStatementQuery(statement_handle=b"[]")),
        messages.packed(proto.TicketStatementQuery(statement_handle=b'{"sql": 1}')),
        messages.packed(proto.TicketStatementQuery(statement_handle=b"{}")),
        messages.packed(proto.DoPutUpdateResult()),
        messages.packed(proto.TicketStatementQuery()) + b"\xff\xff",
    ],
)
async def test_garbage_tickets_are_refused(ticket: bytes) -> None:
    async with serving() as server:
        with pytest.raises(pa.ArrowInvalid, match=r"ticket|cannot be read"):
            await server.ask(lambda c: c.do_get(flight.Ticket(ticket)).read_all())


@pytest.mark.parametrize(
    "name", ["BeginTransaction", "BeginSavepoint", "EndTransaction", "EndSavepoint"]
)
async def test_transactions_are_not_implemented(name: str) -> None:
    async with serving() as server:
        with pytest.raises(NotImplementedError, match="transactions and savepoints"):
            await server.ask(act_raw(name, b""))
        inside = proto.CommandStatementQuery(query="SELECT 1", transaction_id=b"x")
        with pytest.raises(NotImplementedError, match="transactions are not supported"):
            await server.ask(read(inside))


async def test_waiting_answer_is_cancelled_by_its_principal_only() -> None:
    sql = "SELECT value FROM generate_series(1, 1000000000)"
    query = asked(proto.CommandStatementQuery(query=sql))
    async with serving(keys=KEYS) as server:
        for name, packs in (("CancelFlightInfo", False), ("CancelQuery", True)):
            info = await server.ask(lambda c: c.get_flight_info(query, WRITER))
            assert len(server.services.queries.active) == 1

            def cancel(
                options: Any, info: Any = info, name: str = name, packs: bool = packs
            ) -> Any:
                if packs:
                    older = proto.ActionCancelQueryRequest(info=info.serialize())
                    return act(name, older, options)
                plain = wire.CancelFlightInfoRequest(
                    info=messages.parse(wire.FlightInfo, info.serialize())
                )
                return act_raw(name, plain.SerializeToString(), options)

            await server.ask(cancel(READER))
            assert len(server.services.queries.active) == 1
            (said,) = await server.ask(cancel(WRITER))
            await server.idle()
            if packs:
                older = messages.read_as(proto.ActionCancelQueryResult, said)
                assert older.result == proto.ActionCancelQueryResult.CANCEL_RESULT_CANCELLED
            else:
                result = messages.parse(wire.CancelFlightInfoResult, said)
                assert result.status == wire.CANCEL_STATUS_CANCELLED


async def test_a_statement_of_plain_flight_is_cancelled() -> None:
    query = flight.FlightDescriptor.for_command("SELECT value FROM generate_series(1, 1000000000)")
    async with serving(keys=KEYS) as server:
        info = await server.ask(lambda c: c.get_flight_info(query, WRITER))
        body = wire.CancelFlightInfoRequest(
            info=messages.parse(wire.FlightInfo, info.serialize())
        ).SerializeToString()

        await server.ask(act_raw("CancelFlightInfo", body, READER))
        assert len(server.services.queries.active) == 1
        (said,) = await server.ask(act_raw("CancelFlightInfo", body, WRITER))
        await server.idle()
    result = messages.parse(wire.CancelFlightInfoResult, said)
    assert result.status == wire.CANCEL_STATUS_CANCELLED


async def test_session_options_have_one_value_and_the_session_ends() -> None:
    def use(connected: Any) -> list[bytes]:
        pair = connected.authenticate_basic_token("", "writer")
        options = flight.FlightCallOptions(headers=[pair])
        wanted = wire.SetSessionOptionsRequest()
        wanted.session_options["catalog"].string_value = "other"
        wanted.session_options["schema"].string_value = "public"
        wanted.session_options["timezone"].string_value = "UTC"
        said = [
            *act_raw("SetSessionOptions", wanted.SerializeToString(), options)(connected),
            *act_raw("GetSessionOptions", b"", options)(connected),
            *act_raw("CloseSession", b"", options)(connected),
        ]
        with pytest.raises(flight.FlightUnauthenticatedError):
            act_raw("GetSessionOptions", b"", options)(connected)
        return said

    async with serving(keys=KEYS) as server:
        set_, got, closed = await server.ask(use)
    errors = messages.parse(wire.SetSessionOptionsResult, set_).errors
    assert {name: each.value for name, each in errors.items()} == {
        "catalog": wire.SetSessionOptionsResult.INVALID_VALUE,
        "timezone": wire.SetSessionOptionsResult.INVALID_NAME,
    }
    options = messages.parse(wire.GetSessionOptionsResult, got).session_options
    assert {name: each.string_value for name, each in options.items()} == {
        "catalog": "caraway",
        "schema": "public",
    }
    result = messages.parse(wire.CloseSessionResult, closed)
    assert result.status == wire.CloseSessionResult.CLOSED


async def test_unknown_names_are_told_and_cut() -> None:
    async with serving() as server:
        with pytest.raises(pa.ArrowNotImplementedError, match="no action 'nope'; ListActions"):
            await server.ask(act_raw("nope", b""))
        with pytest.raises(pa.ArrowNotImplementedError, match=r"x{100}\.\.\."):
            await server.ask(act_raw("x" * 7000, b""))


async def test_actions_are_listed() -> None:
    async with serving() as server:
        listed = {each.type for each in await server.ask(lambda c: c.list_actions())}
    assert {"CreatePreparedStatement", "CancelFlightInfo", "SubmitAsyncQuery"} <= listed
    assert "BeginTransaction" not in listed
