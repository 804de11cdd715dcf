"""Statements in a real server: kept connections, cancellation, values that do not fit, secrets."""

import datetime as dt
import itertools
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg2.extensions import parse_dsn

from caraway_core.errors import ExecutionError, InvalidQueryError
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import idle_connections
from caraway_plugins.sources.postgres.databases import conninfo
from caraway_plugins.sources.postgres.reader import PostgresReader
from tests.kit.deadlines import until
from tests.kit.postgres import Server, serving

WAIT_S = 60.0
ONE = pa.schema([("a", pa.int64())])
_NAMES = itertools.count(1)


@pytest.fixture
def reader() -> Iterator[PostgresReader]:
    made = PostgresReader()
    yield made
    made.close()


def table(server: Server, **login: str) -> RemoteTable:
    """Return a table whose statements have an `application_name` of their own."""
    known = {
        "host": server.params["pg_host"],
        "user": "postgres",
        "dbname": "postgres",
        "application_name": f"reader {next(_NAMES)}",
        **login,
    }
    return RemoteTable(ONE, "postgres", ("public", "t"), (), known, 0, ())


def backends(server: Server, of: RemoteTable, state: str = "") -> int:
    """Return the number of connections of a table to the server."""
    condition = f" AND state = '{state}'" if state else ""
    name = of.login["application_name"]
    query = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'{condition}"
    return int(server.rows(query)[0][0])


def read(reader: PostgresReader, of: RemoteTable, sql: str, schema: pa.Schema = ONE) -> list[Any]:
    rows = reader.read(of, sql, schema)
    try:
        return [row for batch in rows for row in batch.to_pylist()]
    finally:
        rows.close()


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))


@given(st.dictionaries(st.sampled_from(["host", "user", "password", "dbname", "options"]), TEXT))
def test_a_login_of_any_texts_is_read_back_as_it_was(login: dict[str, str]) -> None:
    assert parse_dsn(conninfo(login)) == login


def test_a_connection_is_kept_and_used_again(postgres: Server, reader: PostgresReader) -> None:
    of = table(postgres)
    pids = {read(reader, of, "SELECT pg_backend_pid()::bigint AS a")[0]["a"] for _ in range(5)}
    assert len(pids) == 1 and backends(postgres, of) == 1
    reader.close()
    until(lambda: backends(postgres, of) == 0, "the kept connection is closed")
    # A closed pool opens connections again.
    assert read(reader, of, "SELECT 1::bigint AS a") == [{"a": 1}]


def test_connections_of_other_logins_are_not_used(postgres: Server, reader: PostgresReader) -> None:
    postgres.execute("CREATE ROLE other_reader LOGIN")
    of = table(postgres)
    other = table(postgres, user="other_reader")
    schema = pa.schema([("a", pa.string())])
    for each, user in ((of, "postgres"), (other, "other_reader"), (of, "postgres")):
        assert read(reader, each, "SELECT current_user::text AS a", schema) == [{"a": user}]
    reader.close()
    until(lambda: backends(postgres, other) == 0, "the connection is closed")
    postgres.execute("DROP ROLE other_reader")


def test_rows_at_once_have_a_connection_each_and_few_are_kept(
    postgres: Server, reader: PostgresReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_connections, "MOST_IDLE", 2)
    of = table(postgres)
    sql = "SELECT i::bigint AS a FROM generate_series(1, 10) i"
    open_rows = [reader.read(of, sql, ONE) for _ in range(5)]
    streams = [iter(each) for each in open_rows]
    first = [next(stream) for stream in streams]
    assert all(batch.num_rows for batch in first) and backends(postgres, of) == 5
    for stream in streams:
        list(stream)
    until(lambda: backends(postgres, of) == 2, "connections beyond the limit are closed")
    for each in open_rows:
        each.close()
    assert backends(postgres, of) == 2


def test_connections_that_nobody_uses_for_long_are_closed(postgres: Server) -> None:
    """Else those of a password that was changed would stay with the server for good."""
    now = [0.0]
    reader = PostgresReader(lambda: now[0])
    old, new = table(postgres), table(postgres)
    read(reader, old, "SELECT 1::bigint AS a")
    now[0] += idle_connections.LONGEST_IDLE_S - 1
    read(reader, new, "SELECT 1::bigint AS a")
    assert backends(postgres, old) == 1
    now[0] += 2
    read(reader, new, "SELECT 1::bigint AS a")
    until(lambda: backends(postgres, old) == 0, "the old connection is closed")
    assert backends(postgres, new) == 1
    reader.close()


def test_rows_that_are_closed_early_stop_their_statement(
    postgres: Server, reader: PostgresReader
) -> None:
    of = table(postgres)
    rows = reader.read(of, "SELECT i::bigint AS a FROM generate_series(1, 10000000) i", ONE)
    assert next(iter(rows)).num_rows
    rows.close()
    until(lambda: backends(postgres, of) == 0, "the statement was stopped")
    rows.close()
    assert list(rows) == []


def test_closing_stops_a_statement_that_another_thread_waits_for(
    postgres: Server, reader: PostgresReader
) -> None:
    of = table(postgres)
    rows = reader.read(of, "SELECT 1::bigint AS a FROM pg_sleep(600)", ONE)
    failed: list[BaseException] = []

    def wait() -> None:
        try:
            list(rows)
        except BaseException as exc:
            failed.append(exc)

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: backends(postgres, of, "active") == 1, "the statement runs")
    rows.close()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert [type(each) for each in failed] == [ExecutionError]
    until(lambda: backends(postgres, of) == 0, "the statement was stopped")


def test_closing_before_the_first_row_opens_nothing(
    postgres: Server, reader: PostgresReader
) -> None:
    of = table(postgres)
    rows = reader.read(of, "SELECT 1::bigint AS a", ONE)
    rows.close()
    assert list(rows) == [] and backends(postgres, of) == 0


def test_closing_from_many_threads_is_one_closing(postgres: Server, reader: PostgresReader) -> None:
    of = table(postgres)
    rows = reader.read(of, "SELECT i::bigint AS a FROM generate_series(1, 10000000) i", ONE)
    next(iter(rows))
    threads = [threading.Thread(target=rows.close) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert not any(thread.is_alive() for thread in threads)
    until(lambda: backends(postgres, of) == 0, "the statement was stopped")


def test_every_kept_connection_that_broke_is_passed_over(
    postgres: Server, reader: PostgresReader
) -> None:
    of = table(postgres)
    rows = [reader.read(of, "SELECT 1::bigint AS a", ONE) for _ in range(4)]
    streams = [iter(each) for each in rows]
    for stream in streams:
        next(stream)
    for stream in streams:
        list(stream)
    assert backends(postgres, of) == 4
    name = of.login["application_name"]
    postgres.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'"
    )
    until(lambda: backends(postgres, of) == 0, "the connections are gone")
    assert read(reader, of, "SELECT 2::bigint AS a") == [{"a": 2}]
    assert backends(postgres, of) == 1


@pytest.mark.parametrize(
    ("sql", "error", "said"),
    [
        ("SELECT nothing AS a", ExecutionError, 'column "nothing" does not exist'),
        ("SELEKT 1", ExecutionError, "syntax error"),
        ("SELECT (1 / (i - 3))::bigint AS a FROM generate_series(1, 5) i",
         ExecutionError, "division by zero"),
        ("SELECT 9223372036854775807 + i AS a FROM generate_series(0, 1) i",
         InvalidQueryError, "overflow: .*cast what is computed"),
        ("SELECT (2147483647 + i)::int::bigint AS a FROM generate_series(0, 1) i",
         InvalidQueryError, "overflow: .*out of range"),
    ],
)  # fmt: skip
def test_errors_have_the_words_of_the_server_and_no_more(
    postgres: Server, reader: PostgresReader, sql: str, error: type[Exception], said: str
) -> None:
    of = table(postgres, password="hunter2")
    with pytest.raises(error, match=said) as caught:
        read(reader, of, sql)
    told = str(caught.value)
    assert of.title in told and "\n" not in told
    for secret in ("hunter2", postgres.params["pg_host"], "adbc", "libpq", "LINE"):
        assert secret not in told
    # The connection of a failed statement is not kept.
    until(lambda: backends(postgres, of) == 0, "the connection is closed")
    assert read(reader, of, "SELECT 1::bigint AS a") == [{"a": 1}]


@pytest.mark.parametrize(
    ("login", "said"),
    [
        ({"user": "nobody_is_here"}, 'role "nobody_is_here" does not exist'),
        ({"dbname": "nowhere"}, 'database "nowhere" does not exist'),
        ({"host": "/no/such/folder"}, "the connection failed"),
        ({"host": "127.0.0.1", "port": "1"}, "the connection failed"),
    ],
)
def test_a_server_that_cannot_be_reached_is_named_by_its_table(
    postgres: Server, reader: PostgresReader, login: dict[str, str], said: str
) -> None:
    of = table(postgres, password="hunter2", **login)
    with pytest.raises(ExecutionError, match=r"cannot be read: .*check the database") as caught:
        read(reader, of, "SELECT 1::bigint AS a")
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value) and "/no/such" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        ("NULL::int", pa.int64(), None),
        ("7::smallint", pa.int64(), 7),
        ("-9223372036854775808", pa.int64(), -(2**63)),
        ("'x'::char(3)::text", pa.string(), "x"),
        ("''", pa.string(), ""),
        ("'\\x00ff'::bytea", pa.binary(), b"\x00\xff"),
        ("'1.50'::numeric(10,2)::text", pa.decimal128(10, 2), Decimal("1.50")),
        ("date '0001-01-01'", pa.date32(), dt.date(1, 1, 1)),
        ("date '9999-12-31'", pa.date32(), dt.date(9999, 12, 31)),
        ("timestamp '1970-01-01 00:00:00.000001'", pa.timestamp("us"),
         dt.datetime(1970, 1, 1, 0, 0, 0, 1)),
        ("timestamptz '2024-06-01 12:00+02'", pa.timestamp("us", "UTC"),
         dt.datetime(2024, 6, 1, 10, tzinfo=dt.UTC)),
        ("'NaN'::float8", pa.float64(), "nan"),
        ("'-Infinity'::float8", pa.float64(), float("-inf")),
        ("true", pa.bool_(), True),
        # Columns that are declared with another type than that of the database.
        ("date '2024-02-03'", pa.timestamp("us"), dt.datetime(2024, 2, 3)),
        ("timestamp '2024-02-03'", pa.date32(), dt.date(2024, 2, 3)),
        ("timestamptz '2024-02-03 00:00Z'", pa.timestamp("us"), dt.datetime(2024, 2, 3)),
        ("'2024-02-03 04:05:06'::text", pa.timestamp("us"), dt.datetime(2024, 2, 3, 4, 5, 6)),
        ("'17'::text", pa.int16(), 17),
    ],
)  # fmt: skip
def test_values_at_the_edge_of_their_type(
    postgres: Server, reader: PostgresReader, value: str, type_: pa.DataType, expected: object
) -> None:
    schema = pa.schema([("a", type_)])
    (row,) = read(reader, table(postgres), f"SELECT {value} AS a", schema)
    assert str(row["a"]) == expected if expected == "nan" else row["a"] == expected


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("'infinity'::timestamp", pa.timestamp("us")),
        ("'-infinity'::timestamp", pa.timestamp("us")),
        ("'infinity'::timestamptz", pa.timestamp("us", "UTC")),
        ("'NaN'::numeric::text", pa.decimal128(10, 2)),
        ("'12345678.9'::text", pa.decimal128(5, 2)),
        ("'abc'", pa.int64()),
        ("70000", pa.int16()),
        ("'2024-13-01'", pa.date32()),
    ],
)
def test_a_value_that_does_not_fit_names_its_column_and_the_remedy(
    postgres: Server, reader: PostgresReader, value: str, type_: pa.DataType
) -> None:
    schema = pa.schema([("odd name", type_)])
    with pytest.raises(InvalidQueryError, match=r"column 'odd name' is not a .*declare") as caught:
        read(reader, table(postgres), f'SELECT {value} AS "odd name"', schema)
    assert str(type_) in str(caught.value)


@pytest.mark.parametrize("value", ["infinity", "-infinity"])
def test_an_endless_date_is_an_error_and_no_other_day(
    postgres: Server, reader: PostgresReader, value: str
) -> None:
    schema = pa.schema([("a", pa.date32())])
    with pytest.raises(InvalidQueryError, match="column 'a' is not a date32"):
        read(reader, table(postgres), f"SELECT date '{value}' AS a", schema)


def test_an_endless_moment_between_others_is_found(
    postgres: Server, reader: PostgresReader
) -> None:
    schema = pa.schema([("a", pa.timestamp("us"))])
    sql = (
        "SELECT CASE WHEN i = 5000 THEN 'infinity' WHEN i % 7 = 0 THEN NULL "
        "ELSE '2024-01-01' END::timestamp AS a FROM generate_series(1, 10000) i"
    )
    with pytest.raises(InvalidQueryError, match="column 'a' is not a timestamp"):
        read(reader, table(postgres), sql, schema)


def test_large_answers_come_in_batches_and_whole(postgres: Server, reader: PostgresReader) -> None:
    schema = pa.schema([("a", pa.int64()), ("s", pa.string())])
    sql = "SELECT i::bigint AS a, repeat('x', 1000) AS s FROM generate_series(1, 20000) i"
    rows = reader.read(table(postgres), sql, schema)
    batches = list(rows)
    assert len(batches) > 2 and {batch.schema for batch in batches} == {schema}
    numbers = [number for batch in batches for number in batch.column("a").to_pylist()]
    assert numbers == list(range(1, 20001))


def test_an_answer_without_rows_has_its_columns(postgres: Server, reader: PostgresReader) -> None:
    rows = reader.read(table(postgres), "SELECT 1::bigint AS a WHERE false", ONE)
    assert sum(batch.num_rows for batch in rows) == 0
    rows.close()


def test_an_answer_with_other_columns_than_asked_for_is_an_error(
    postgres: Server, reader: PostgresReader
) -> None:
    rows = reader.read(table(postgres), "SELECT 1::bigint AS a, 2::bigint AS b", ONE)
    with pytest.raises(ValueError, match="zip"):
        list(rows)
    rows.close()


def test_a_server_that_restarts_between_statements_is_read_again(reader: PostgresReader) -> None:
    with serving() as server:
        of = table(server)
        assert read(reader, of, "SELECT 1::bigint AS a") == [{"a": 1}]
        server.kill()
        with pytest.raises(ExecutionError, match="cannot be read"):
            read(reader, of, "SELECT 1::bigint AS a")
        server.start()
        assert read(reader, of, "SELECT 2::bigint AS a") == [{"a": 2}]
