import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError, QueryError
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.odbc.reader import OdbcReader
from caraway_plugins.sources.odbc.source import OdbcSource
from tests.kit import mariadb, odbc_drivers, sqlite_files
from tests.kit import postgres as servers
from tests.kit.adbc_drivers import wait_until_idle, wait_until_running
from tests.kit.engine import rows, session
from tests.kit.mariadb import Mariadb
from tests.kit.postgres import Server
from tests.kit.remote import watched


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    odbc_drivers.require("PostgreSQL Unicode")
    with servers.serving() as server:
        server.execute(
            "CREATE TYPE mood AS ENUM ('good', 'bad')",
            "CREATE TABLE kinds (id int, name text, price numeric(9, 2), exact numeric, feeling "
            "mood, ratio float8, data bytea, is_on bool)",
            "INSERT INTO kinds VALUES (1, 'ä\\', 1.50, 0.5, 'good', 0.1, '\\x0001', true)",
            "INSERT INTO kinds VALUES (2, 'it''s', NULL, 0.00000000012345, 'bad')",
            "CREATE TABLE texts (t text)",
            "INSERT INTO texts VALUES (repeat('ä', 9000))",
            "CREATE USER reader",
        )
        yield server


@pytest.fixture(scope="module")
def maria() -> Iterator[Mariadb]:
    odbc_drivers.require("MariaDB Unicode")
    with mariadb.serving() as server:
        server.execute(
            "CREATE TABLE kinds (id INT PRIMARY KEY, large BIGINT UNSIGNED, whole INT UNSIGNED, "
            "bits BIT(3), name VARCHAR(20) CHARSET utf8mb4, price DECIMAL(38, 10))",
            "INSERT INTO kinds VALUES (1, 18446744073709551615, 4294967295, b'101', 'a\\', "
            "1234567890123456789012345678.1234567890)",
        )
        yield server


def over(server: Server, name: str, **params: str) -> RemoteTable:
    return OdbcSource().resolve(odbc_drivers.of_postgres(server, name, **params))


async def test_types_of_postgres(postgres: Server) -> None:
    table = over(postgres, "kinds", odbc_dialect="postgresql", odbc_password="hunter2")
    types = dict(zip(table.schema.names, table.schema.types, strict=True))
    assert types["id"] == pa.int32()
    assert types["price"] == pa.decimal128(9, 2)
    assert types["ratio"] == pa.float64()
    (first,) = await rows(session({"t": table}), "SELECT * FROM t WHERE id = 1")
    assert first["name"] == "ä\\"
    assert first["price"] == Decimal("1.50")
    assert first["ratio"] == 0.1
    assert first["data"] == b"\x00\x01"
    assert first["is_on"] is True
    assert "hunter2" not in repr(table)


async def test_number_that_the_driver_would_round_is_an_error(postgres: Server) -> None:
    over_it = session({"t": over(postgres, "kinds", odbc_dialect="postgresql")})
    assert await rows(over_it, "SELECT exact FROM t WHERE id = 1") == [{"exact": Decimal("0.5")}]
    for dialect in ("none", "postgresql"):
        every = session({"t": over(postgres, "kinds", odbc_dialect=dialect)})
        with pytest.raises(QueryError, match="with a type that fits"):
            await rows(every, "SELECT exact FROM t")


@pytest.mark.parametrize(
    ("sql", "expected", "sent"),
    [
        ("SELECT id FROM t WHERE id > 1", [{"id": 2}], 'WHERE ("id" > (1)::int8)'),
        ("SELECT id FROM t WHERE name = 'ä\\'", [{"id": 1}], "WHERE (\"name\" = 'ä\\'::text)"),
        ("SELECT id FROM t WHERE feeling = 'none'", [], 'FROM "kinds"'),
        ("SELECT id FROM t WHERE ratio = 0.1", [{"id": 1}], 'FROM "kinds"'),
        ("SELECT sum(id) AS s, count(*) AS n FROM t", [{"s": 3, "n": 2}], "sum("),
    ],
)
async def test_what_the_dialect_of_postgres_sends(
    postgres: Server, sql: str, expected: list[dict[str, object]], sent: str
) -> None:
    table = over(postgres, "kinds", sql_dialect="postgresql")
    with watched("odbc/postgresql") as statements:
        assert await rows(session({"t": table}), sql) == expected
    assert sent in statements[-1], statements


async def test_text_that_has_no_room_is_an_error(postgres: Server) -> None:
    found = await rows(session({"t": over(postgres, "texts")}), "SELECT t FROM t")
    assert found == [{"t": "ä" * 9_000}]
    short = session({"t": over(postgres, "texts", odbc_max_text_size="100")})
    with pytest.raises(QueryError, match="too large to be written"):
        await rows(short, "SELECT t FROM t")


async def test_integers_of_mariadb_without_a_sign(maria: Mariadb) -> None:
    request = odbc_drivers.of_mariadb(maria, "kinds", odbc_dialect="mysql")
    over_it = session({"t": OdbcSource().resolve(request)})
    assert await rows(over_it, "SELECT bits, name, price FROM t WHERE name = 'a\\'") == [
        {
            "bits": b"\x05",
            "name": "a\\",
            "price": Decimal("1234567890123456789012345678.1234567890"),
        }
    ]
    for name in ("large", "whole"):
        with pytest.raises(QueryError, match="with a type that fits"):
            await rows(over_it, f"SELECT {name} FROM t")


async def test_sqlite_in_backquotes(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    sqlite_files.run(
        file, 'CREATE TABLE `a"b` (d DATE)', "INSERT INTO `a\"b` VALUES ('2024-02-29')"
    )
    request = odbc_drivers.of_sqlite(file, '"a""b"', odbc_dialect="backquotes")
    found = await rows(session({"t": OdbcSource().resolve(request)}), "SELECT d FROM t")
    assert found == [{"d": date(2024, 2, 29)}]


@pytest.mark.parametrize(
    ("path", "params", "type_"),
    [
        ("none", {}, "not_found"),
        ("none.none", {}, "not_found"),
        ("kinds", {"odbc_connection_string": "Driver={Nothing};Pwd=hunter2"}, "unsupported"),
        (
            "kinds",
            {
                "odbc_connection_string": "Driver={PostgreSQL Unicode};Server=127.0.0.1;Port=1;"
                "Database=x;Uid=me;Pwd=hunter2"
            },
            "unavailable",
        ),
        ("kinds", {"odbc_dialect": "oracle"}, "invalid"),
        ("kinds", {"odbc_max_text_size": "0"}, "invalid"),
        ('kinds"', {}, "invalid"),
        ("x'; DROP TABLE kinds; --", {}, "not_found"),
        ("x'); DROP TABLE kinds; --", {"odbc_dialect": "postgresql"}, "not_found"),
    ],
)
def test_what_cannot_be_read_has_the_code_of_its_kind(
    postgres: Server, path: str, params: Mapping[str, str], type_: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        over(postgres, path, **params)
    assert caught.value.type == type_, caught.value.message
    assert "hunter" not in caught.value.message
    assert "/tmp" not in caught.value.message


@pytest.mark.parametrize("user", ["nobody", "reader"])
def test_refused_logins_and_rights(postgres: Server, user: str) -> None:
    request = odbc_drivers.of_postgres(postgres, "kinds")
    place = request.params["odbc_connection_string"].replace("Uid=postgres;", "")
    login = {"odbc_username": user, "odbc_password": "hunter2"}
    params = {"odbc_connection_string": place.removesuffix(";"), **login}
    with pytest.raises(DatasetError) as caught:
        OdbcSource().resolve(replace(request, params=params))
    assert caught.value.type == "auth", caught.value.message
    assert "hunter" not in caught.value.message


async def test_server_that_was_restarted_is_asked_again() -> None:
    odbc_drivers.require("PostgreSQL Unicode")
    with servers.serving() as server:
        server.execute("CREATE TABLE t AS SELECT 1 AS i")
        over_it = session({"t": over(server, "t", odbc_dialect="postgresql")})
        assert await rows(over_it, "SELECT i FROM t") == [{"i": 1}]
        server.kill()
        with pytest.raises(QueryError, match="the connection failed"):
            await rows(over_it, "SELECT i FROM t")
        server.start()
        assert await rows(over_it, "SELECT i FROM t") == [{"i": 1}]


def test_a_statement_that_is_closed_ends_with_its_time(postgres: Server) -> None:
    """The client cannot stop a statement, so closing does not wait for it."""
    table = over(postgres, "kinds", odbc_query_timeout="1s")
    found = OdbcReader().read(
        table, "SELECT pg_sleep(600), 7919 AS i", pa.schema([("i", pa.int32())])
    )

    def read() -> None:
        with suppress(QueryError):
            list(found)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    wait_until_running(postgres, "7919")
    found.close()
    wait_until_idle(postgres, "7919")
    thread.join(20)
    assert not thread.is_alive()
