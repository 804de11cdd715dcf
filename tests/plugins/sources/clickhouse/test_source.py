import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError, QueryError
from caraway_plugins.sources.clickhouse.reader import ClickhouseReader
from caraway_plugins.sources.clickhouse.source import ClickhouseSource
from tests.kit import clickhouse_server
from tests.kit.clickhouse_server import ClickhouseServer
from tests.kit.deadlines import until
from tests.kit.engine import rows, session
from tests.kit.remote import watched

INTEGERS = pa.schema([("number", pa.uint64())])


@pytest.fixture(scope="module")
def server() -> Iterator[ClickhouseServer]:
    with clickhouse_server.serving() as made:
        made.run("CREATE DATABASE sales")
        made.run(
            "CREATE TABLE sales.kinds (i8 Int8, u64 UInt64, f Float64, d Decimal(15, 2), "
            "s LowCardinality(Nullable(String)), e Enum8('good' = 1, 'bad' = 2), day Date, "
            "at DateTime('Asia/Tokyo'), fine DateTime64(3, 'Europe/Paris'), u UUID, ip IPv4, "
            "large Int128, fixed FixedString(3), numbers Array(UInt16), days Array(Date), "
            "m Map(String, Int32), n Nullable(Int32)) ENGINE = MergeTree ORDER BY i8"
        )
        made.run(
            "INSERT INTO sales.kinds VALUES (-1, 18446744073709551615, nan, 1.5, 'it''s \\\\', "
            "'good', '2024-02-29', '2024-02-29 09:00:00', '2024-02-29 01:00:00.123', "
            "'00000000-0000-0000-0000-000000000001', '1.2.3.4', 170141183460469231731687303715, "
            "'ab', [1, 2], ['2024-02-29'], {'a': 1}, NULL), "
            "(2, 0, -0.0, 2.25, NULL, 'bad', '1970-01-01', 0, 0, "
            "'00000000-0000-0000-0000-000000000002', '0.0.0.0', 0, '', [], [], {}, 7)"
        )
        made.run("CREATE TABLE bytes (s String) ENGINE = Memory")
        made.run("INSERT INTO bytes VALUES (unhex('ff'))")
        made.run("CREATE TABLE states (a Int8, s AggregateFunction(sum, Int64)) ENGINE = Memory")
        yield made


async def test_types(server: ClickhouseServer) -> None:
    table = server.resolved("sales.kinds")
    assert table.row_count == 2
    assert table.schema.field("at").type == pa.timestamp("s", "UTC")
    assert table.schema.field("fine").type == pa.timestamp("ms", "UTC")
    assert table.schema.field("numbers").type == pa.list_(pa.uint16())
    (found,) = await rows(session({"t": table}), "SELECT * FROM t WHERE i8 < 0")
    assert repr(found.pop("f")) == "nan"
    assert found == {
        "i8": -1, "u64": 2**64 - 1, "d": Decimal("1.50"), "s": "it's \\", "e": "good",
        "day": date(2024, 2, 29), "at": datetime(2024, 2, 29, tzinfo=UTC),
        "fine": datetime(2024, 2, 29, 0, 0, 0, 123_000, UTC),
        "u": "00000000-0000-0000-0000-000000000001", "ip": "1.2.3.4",
        "large": "170141183460469231731687303715", "fixed": b"ab\0", "numbers": [1, 2],
        "days": "['2024-02-29']", "m": "{'a':1}", "n": None,
    }  # fmt: skip
    assert "hunter2" not in repr(table)


@pytest.mark.parametrize(
    ("sql", "expected", "sent"),
    [
        ("SELECT i8 FROM t WHERE s = 'it''s \\'", [{"i8": -1}], "= 'it''s \\\\')"),
        ("SELECT i8 FROM t WHERE s = '\\'' OR 1=1 --'", [], "= '\\\\'' OR 1=1 --')"),
        ("SELECT i8 FROM t WHERE f > 1", [{"i8": -1}], 'isNaN("f")'),
        ("SELECT i8 FROM t WHERE f = 0", [{"i8": 2}], '"f" = toFloat64'),
        ("SELECT i8 FROM t WHERE d > 1.5", [{"i8": 2}], "toDecimal256('1.5"),
        ("SELECT i8 FROM t WHERE day > DATE '0001-01-01' AND day < DATE '2000-01-01'",
         [{"i8": 2}], "WHERE (\"day\" < toDate32('2000-01-01'))"),
        ("SELECT i8 FROM t WHERE fine = TIMESTAMPTZ '2024-02-29 00:00:00.123Z'", [{"i8": -1}],
         "toDateTime64('2024-02-29 00:00:00.123000', 6, 'UTC')"),
        ("SELECT i8 FROM t WHERE e = 'none'", [], 'FROM "sales"."kinds"'),
        ("SELECT max(at) AS m, sum(d) AS s, min(n) AS n FROM t WHERE i8 > 5",
         [{"m": None, "s": None, "n": None}], "max("),
        ("SELECT a.i8 FROM t AS a LEFT JOIN t AS b ON a.i8 = b.n WHERE b.i8 IS NULL AND a.i8 > 0",
         [{"i8": 2}], "LEFT JOIN"),
        ("SELECT u64 FROM t ORDER BY u64 DESC LIMIT 1", [{"u64": 2**64 - 1}], "LIMIT 1"),
    ],
)  # fmt: skip
async def test_what_the_server_does(
    server: ClickhouseServer, sql: str, expected: list[dict[str, object]], sent: str
) -> None:
    over = session({"t": server.resolved("sales.kinds")})
    with watched("clickhouse") as statements:
        assert await rows(over, sql) == expected
    assert sent in statements[-1], statements


async def test_names_with_backslashes_and_quotes(server: ClickhouseServer) -> None:
    name = 'a\\" FROM system.one --'
    server.load(name, pa.table({name: pa.array([1], pa.int64())}))
    quoted = '"' + name.replace('"', '""') + '"'
    over = session({"t": server.resolved(quoted)})
    assert await rows(over, f"SELECT {quoted} AS x FROM t WHERE {quoted} = 1") == [{"x": 1}]


async def test_bytes_that_are_no_text_are_an_error(server: ClickhouseServer) -> None:
    over = session({"t": server.resolved("bytes")})
    with pytest.raises(QueryError, match="with a type that fits"):
        await rows(over, "SELECT s FROM t")


def test_states_of_aggregates_are_left_out(server: ClickhouseServer) -> None:
    assert server.resolved("states").schema.names == ["a"]


@pytest.mark.parametrize(
    ("path", "params", "type_"),
    [
        ("none", {}, "not_found"),
        ("none.none", {}, "not_found"),
        ("x'; DROP TABLE bytes; --", {}, "not_found"),
        ("x\\' OR 1=1 --", {}, "not_found"),
        ("bytes", {"clickhouse_pass": "hunter3"}, "auth"),
        ("bytes", {"clickhouse_http_port": "1"}, "unavailable"),
        ("bytes", {"clickhouse_http_port": "x"}, "invalid"),
        ("bytes", {"clickhouse_http_port": "", "clickhouse_tcp_port": "9001"}, "invalid"),
        ("bytes", {"clickhouse_host": ""}, "invalid"),
        ("bytes", {"clickhouse_connection_string": "mysql://host"}, "invalid"),
        ("bytes", {"clickhouse_secure": "maybe"}, "invalid"),
        ('bytes"', {}, "invalid"),
    ],
)
def test_what_cannot_be_read_has_the_code_of_its_kind(
    server: ClickhouseServer, path: str, params: Mapping[str, str], type_: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        server.resolved(path, **params)
    assert caught.value.type == type_, caught.value.message
    assert "hunter" not in caught.value.message


@pytest.mark.parametrize("scheme", ["tcp", "http"])
def test_connection_strings(server: ClickhouseServer, scheme: str) -> None:
    place = f"{scheme}://reader:hunter2@127.0.0.1:{server.port if scheme == 'http' else 9000}/sales"
    params = {"clickhouse_connection_string": f"{place}?secure=false"}
    if scheme == "tcp":
        params["clickhouse_http_port"] = str(server.port)
    request = server.request("kinds")
    given = {**params, "connection_timeout": "5000"}
    table = ClickhouseSource().resolve(clickhouse_server.with_params(request, given))
    assert table.relation == ("sales", "kinds")


def test_server_that_dies_while_rows_flow() -> None:
    with clickhouse_server.serving() as server:
        server.run("CREATE TABLE t (number UInt64) ENGINE = Memory")
        table = server.resolved("t")
        found = ClickhouseReader().read(table, "SELECT number FROM numbers(20000000000)", INTEGERS)
        batches = iter(found)
        next(batches)
        server.kill()
        with pytest.raises(QueryError, match="cannot be read: the connection failed") as caught:
            list(batches)
        assert "hunter2" not in caught.value.message


@pytest.mark.parametrize("is_waiting", [True, False])
def test_closing_ends_the_statement_at_the_server(
    server: ClickhouseServer, is_waiting: bool
) -> None:
    sql = "SELECT sleep(3) AS number" if is_waiting else "SELECT number FROM numbers(20000000000)"
    found = ClickhouseReader().read(server.resolved("bytes"), sql, INTEGERS)
    batches = iter(found)

    def read() -> None:
        with suppress(QueryError):
            list(batches)

    thread = threading.Thread(target=read, daemon=True)
    if is_waiting:
        thread.start()
    else:
        next(batches)
    until(lambda: bool(server.run("RUNNING")), "the statement runs")
    found.close()
    until(lambda: not server.run("RUNNING"), "the statement ends at the server")
    if is_waiting:
        thread.join(20)
        assert not thread.is_alive()
