from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError, QueryError
from caraway_plugins.sources.adbc.reader import AdbcReader
from caraway_plugins.sources.snowflake.source import SnowflakeSource
from tests.kit import fakesnow_server
from tests.kit.engine import rows, session
from tests.kit.fakesnow_server import FakesnowServer
from tests.kit.remote import watched


@pytest.fixture(scope="module")
def server() -> Iterator[FakesnowServer]:
    with fakesnow_server.serving() as made:
        made.run(
            "CREATE TABLE DB.S.ORDERS (ID INT, NAME VARCHAR, PRICE NUMBER(15, 2), RATIO FLOAT, "
            "DAY DATE, MOMENT TIMESTAMP_NTZ, IS_ON BOOLEAN, NOTE VARIANT)",
            "INSERT INTO DB.S.ORDERS SELECT 1, 'it''s \\\\', 1.5, 0.1, '2024-02-29', "
            "'2024-02-29 12:30:15.123456', TRUE, PARSE_JSON('{\"a\": 1}')",
            "INSERT INTO DB.S.ORDERS (ID, NAME) VALUES (2, 'b')",
            'CREATE TABLE DB.S."a""b" ("select" INT)',
            'INSERT INTO DB.S."a""b" VALUES (7)',
        )
        yield made


async def test_types(server: FakesnowServer) -> None:
    table = SnowflakeSource().resolve(server.request("db.s.orders"))
    assert table.relation == ("DB", "S", "ORDERS")
    assert table.schema.field("ID").type == pa.decimal128(38, 0)
    found = await rows(session({"t": table}), 'SELECT * FROM t WHERE "ID" = 1')
    assert found == [
        {
            "ID": Decimal(1), "NAME": "it's \\", "PRICE": Decimal("1.50"), "RATIO": 0.1,
            "DAY": date(2024, 2, 29), "MOMENT": datetime(2024, 2, 29, 12, 30, 15, 123_456),
            "IS_ON": True, "NOTE": '{"a":1}',
        }
    ]  # fmt: skip
    assert "hunter2" not in repr(table)


@pytest.mark.parametrize(
    ("sql", "expected", "sent"),
    [
        ('SELECT "ID" FROM t WHERE "ID" > 1', [{"ID": Decimal(2)}], 'WHERE ("ID" > 1)'),
        ("SELECT \"ID\" FROM t WHERE \"NAME\" = 'b'", [{"ID": Decimal(2)}], "= 'b')"),
        ('SELECT sum("PRICE") AS s FROM t', [{"s": Decimal("1.50")}], 'sum("PRICE")'),
        ('SELECT "ID" FROM t ORDER BY "ID" DESC LIMIT 1', [{"ID": Decimal(2)}], "LIMIT 1"),
        ("SELECT \"ID\" FROM t WHERE \"DAY\" = DATE '2024-02-29'", [{"ID": Decimal(1)}],
         "DATE '2024-02-29'"),
    ],
)  # fmt: skip
async def test_what_the_server_does(
    server: FakesnowServer, sql: str, expected: list[dict[str, object]], sent: str
) -> None:
    over = session({"t": SnowflakeSource().resolve(server.request("DB.S.ORDERS"))})
    with watched("snowflake") as statements:
        assert await rows(over, sql) == expected
    assert sent in statements[-1], statements


async def test_text_with_a_backslash_is_compared_here(server: FakesnowServer) -> None:
    over = session({"t": SnowflakeSource().resolve(server.request("DB.S.ORDERS"))})
    with watched("snowflake") as statements:
        sql = "SELECT \"ID\" FROM t WHERE \"NAME\" = 'it''s \\'"
        assert await rows(over, sql) == [{"ID": Decimal(1)}]
    assert "WHERE" not in statements[-1]


async def test_names_in_quotes_are_taken_as_they_are(server: FakesnowServer) -> None:
    table = SnowflakeSource().resolve(server.request('db."S"."a""b"'))
    assert table.relation == ("DB", "S", 'a"b')
    assert await rows(session({"t": table}), 'SELECT "select" AS s FROM t') == [{"s": 7}]


async def test_moment_that_has_no_nanoseconds_is_an_error(server: FakesnowServer) -> None:
    server.run("CREATE TABLE DB.S.ENDS (A TIMESTAMP_NTZ)")
    server.run("INSERT INTO DB.S.ENDS SELECT '9999-12-31 00:00:00'")
    over = session({"t": SnowflakeSource().resolve(server.request("DB.S.ENDS"))})
    with pytest.raises(QueryError, match="overflow"):
        await rows(over, "SELECT * FROM t")


@pytest.mark.parametrize(
    ("path", "params", "type_"),
    [
        ("DB.S.NONE", {}, "not_found"),
        ('DB.S."x\'; DROP TABLE ORDERS; --"', {}, "not_found"),
        ("ORDERS", {}, "invalid"),
        ("DB.S.ORDERS", {"snowflake_port": "1"}, "unavailable"),
        ("DB.S.ORDERS", {"snowflake_account": ""}, "invalid"),
        ("DB.S.ORDERS", {"snowflake_auth_type": "other"}, "invalid"),
        ("DB.S.ORDERS", {"snowflake_auth_type": "keypair"}, "invalid"),
        (
            "DB.S.ORDERS",
            {"snowflake_auth_type": "keypair", "snowflake_private_key_path": "none.p8"},
            "invalid",
        ),
    ],
)
def test_what_cannot_be_read_has_the_code_of_its_kind(
    server: FakesnowServer, path: str, params: Mapping[str, str], type_: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        SnowflakeSource().resolve(server.request(path, **params))
    assert caught.value.type == type_, caught.value.message
    assert "hunter" not in caught.value.message


async def test_server_that_went_away_is_an_error_of_the_connection() -> None:
    with fakesnow_server.serving() as server:
        server.run("CREATE TABLE DB.S.T (A INT)", "INSERT INTO DB.S.T VALUES (1)")
        table = SnowflakeSource().resolve(server.request("DB.S.T"))
        server.kill()
        found = AdbcReader().read(table, 'SELECT "A" FROM "DB"."S"."T"', table.schema)
        with pytest.raises(QueryError, match="cannot be read: the connection failed") as caught:
            list(found)
        assert "hunter2" not in caught.value.message


def test_key_of_a_login(tmp_path: Path) -> None:
    (tmp_path / "key.p8").write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    params = {"snowflake_auth_type": "keypair", "snowflake_private_key_passphrase": "hunter2"}
    request = FakesnowServer(1, None).request(  # type: ignore[arg-type] # It is not started.
        "DB.S.T", snowflake_private_key_path=str(tmp_path / "key.p8"), **params
    )
    login = SnowflakeSource().login(request)
    assert login["option.adbc.snowflake.sql.auth_type"] == "auth_jwt"
    assert "BEGIN" in login["option.adbc.snowflake.sql.client_option.jwt_private_key_pkcs8_value"]
