import threading
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError, QueryError
from caraway_plugins.sources.flightsql.reader import FlightSqlReader
from caraway_plugins.sources.flightsql.source import FlightSqlSource
from tests.kit import flight_sql_server
from tests.kit.certificates import make_certificate
from tests.kit.engine import rows, session
from tests.kit.flight_sql_server import FlightSqlServer

ROWS = pa.table(
    {
        "id": pa.array([1, 2, None, -(2**63)], pa.int64()),
        "name": ["a", "it's", None, "A"],
        "price": pa.array([Decimal("1.5"), None, Decimal(0), Decimal(2)], pa.decimal128(9, 2)),
        "day": [date(2024, 2, 29), None, date(1, 1, 1), date(9999, 12, 31)],
        "tags": [["x"], [], None, ["y", None]],
    }
)


@pytest.fixture
def server() -> Iterator[FlightSqlServer]:
    with flight_sql_server.serving() as made:
        made.load("t", ROWS)
        yield made


async def test_rows_and_types(server: FlightSqlServer) -> None:
    table = server.resolved("t")
    assert table.schema.types == ROWS.schema.types
    found = await rows(session({"t": table}), "SELECT * FROM t")
    assert sorted(map(repr, found)) == sorted(map(repr, ROWS.to_pylist()))
    assert "hunter2" not in repr(table)


async def test_the_server_does_what_standard_sql_determines(server: FlightSqlServer) -> None:
    over = session({"t": server.resolved("main.t")})
    server.sent.clear()
    smallest = -(2**63)
    for sql, expected, sent in [
        ("SELECT name FROM t WHERE id = 2", [{"name": "it's"}], 'WHERE ("id" = 2)'),
        (f"SELECT name FROM t WHERE id = {smallest}", [{"name": "A"}], "- 1"),
        ("SELECT id FROM t WHERE name = 'a'", [{"id": 1}], "WHERE (\"name\" = 'a')"),
        ("SELECT count(*) AS n, max(id) AS m FROM t", [{"n": 4, "m": 2}], "max("),
        ("SELECT id FROM t ORDER BY id NULLS FIRST LIMIT 2", [{"id": None}, {"id": smallest}],
         "LIMIT 2"),
        ("SELECT day FROM t WHERE day = DATE '2024-02-29'", [{"day": date(2024, 2, 29)}],
         "DATE '2024-02-29'"),
        ("SELECT id FROM t WHERE price = 1.5", [{"id": 1}], '"price" AS'),
    ]:  # fmt: skip
        assert await rows(over, sql) == expected
        assert sent in server.sent[-1], server.sent[-1]


async def test_text_with_a_backslash_is_compared_here(server: FlightSqlServer) -> None:
    over = session({"t": server.resolved("t")})
    assert await rows(over, "SELECT id FROM t WHERE name = 'a\\'") == []
    assert "WHERE" not in server.sent[-1]


async def test_names_are_quoted(server: FlightSqlServer) -> None:
    server.run('CREATE SCHEMA "a.b"; CREATE TABLE "a.b"."x"" y" AS SELECT 1 AS "select"')
    table = server.resolved('memory."a.b"."x"" y"')
    assert await rows(session({"t": table}), 'SELECT "select" AS s FROM t') == [{"s": 1}]


@pytest.mark.parametrize(
    ("path", "params", "type_"),
    [
        ("none", {}, "not_found"),
        ("t", {"flightsql_password": "hunter3"}, "auth"),
        ("t", {"flightsql_endpoint": "grpc://127.0.0.1:1"}, "unavailable"),
        ("t", {"flightsql_endpoint": "ftp://127.0.0.1:1"}, "invalid"),
        ("t", {"flightsql_tls_root_certs": "none.pem"}, "invalid"),
        ("a.b.c.d", {}, "invalid"),
        ('t"', {}, "invalid"),
    ],
)
def test_what_cannot_be_read_has_the_code_of_its_kind(
    server: FlightSqlServer, path: str, params: dict[str, str], type_: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        FlightSqlSource().resolve(server.request(path, client_timeout="5s", **params))
    assert caught.value.type == type_
    assert "hunter" not in caught.value.message


def test_fingerprint_changes_with_the_columns(server: FlightSqlServer) -> None:
    source, request = FlightSqlSource(), server.request("t")
    before = source.fingerprint(request)
    server.run("INSERT INTO t SELECT * FROM t")
    assert source.fingerprint(request) == before
    server.run("ALTER TABLE t ADD COLUMN more int")
    assert source.fingerprint(request) != before


async def test_tls_with_an_authority_of_its_own(tmp_path: Path) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    make_certificate(certificate, key, is_authority=True)
    with flight_sql_server.serving((certificate, key)) as server:
        server.load("t", ROWS)
        trusted = server.request("t", flightsql_tls_root_certs=str(certificate))
        over = session({"t": FlightSqlSource().resolve(trusted)})
        assert await rows(over, "SELECT count(*) AS n FROM t") == [{"n": 4}]
        with pytest.raises(DatasetError) as caught:
            FlightSqlSource().resolve(server.request("t", client_timeout="5s"))
        assert caught.value.type == "unavailable"


async def test_server_that_goes_away_while_rows_flow(server: FlightSqlServer) -> None:
    server.load("many", pa.table({"i": range(1000)}))
    over = session({"t": server.resolved("many")})
    server.breaks_after = 3
    with pytest.raises(QueryError, match="cannot be read: the connection failed") as caught:
        await rows(over, "SELECT i FROM t")
    assert "hunter2" not in caught.value.message
    server.breaks_after = None
    assert len(await rows(over, "SELECT i FROM t")) == 1000


async def test_login_that_ended_is_renewed(server: FlightSqlServer) -> None:
    over = session({"t": server.resolved("t")})
    assert len(await rows(over, "SELECT id FROM t")) == 4
    server.tokens.clear()
    assert len(await rows(over, "SELECT id FROM t")) == 4


@pytest.mark.parametrize("is_reading", [True, False])
def test_closing_ends_the_statement_at_the_server(
    server: FlightSqlServer, is_reading: bool
) -> None:
    table = server.resolved("t")
    server.is_endless = True
    found = FlightSqlReader().read(table, 'SELECT "id" FROM "t"', table.schema.empty_table()
                                   .select(["id"]).schema)  # fmt: skip
    batches = iter(found)
    next(batches)
    assert server.has_begun.wait(10)
    if is_reading:
        thread = threading.Thread(target=lambda: list(batches), daemon=True)
        thread.start()
    found.close()
    assert server.has_ended.wait(10)
    if is_reading:
        thread.join(10)
        assert not thread.is_alive()
