"""Tables of Spark Connect, which Sail serves."""

import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError, QueryError
from caraway_plugins.sources.adbc.reader import AdbcReader
from caraway_plugins.sources.spark.source import SparkSource
from tests.kit import spark_server
from tests.kit.engine import rows, session
from tests.kit.remote import watched
from tests.kit.spark_server import SparkServer

MOMENT = datetime(2024, 2, 29, 12, 30, 15, 123_456)
ORDERS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "name": ["it's \\", "b"],
        "price": pa.array([Decimal("1.50"), None], pa.decimal128(15, 2)),
        "day": [date(2024, 2, 29), date(1, 1, 1)],
        "at": pa.array([MOMENT, None], pa.timestamp("us")),
        "moment": pa.array([MOMENT.replace(tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        "Odd `name": pa.array([7, 8], pa.int8()),
        "parts": [[1, 2], None],
    }
)


@pytest.fixture(scope="module")
def server() -> Iterator[SparkServer]:
    with spark_server.serving() as made:
        made.load("orders", ORDERS)
        yield made


async def test_types(server: SparkServer) -> None:
    table = SparkSource().resolve(server.request("orders"))
    assert table.schema.types[:7] == ORDERS.schema.types[:7]
    assert await rows(session({"t": table}), "SELECT * FROM t ORDER BY id") == ORDERS.to_pylist()
    assert "hunter2" not in repr(table)


@pytest.mark.parametrize(
    ("where", "sent"),
    [
        ("id < 2", "(`id` < 2L)"),
        ("price = 1.5", "(`price` = 1.50BD)"),
        ("day = DATE '2024-02-29'", "DATE '2024-02-29'"),
        ("at = TIMESTAMP '2024-02-29 12:30:15.123456'", "TIMESTAMP_NTZ '2024-02-29 12:30:15."),
        ("moment = TIMESTAMPTZ '2024-02-29T12:30:15.123456Z'", "12:30:15.123456+00:00'"),
        ("id <> 2 AND name <> 'b'", "(`id` <> 2L)"),
        ('"Odd `name" = 7', "(`Odd ``name` = 7L)"),
    ],
)
async def test_filters_are_computed_by_the_server(
    server: SparkServer, where: str, sent: str
) -> None:
    over = session({"t": SparkSource().resolve(server.request("orders"))})
    with watched("spark") as statements:
        assert await rows(over, f"SELECT id FROM t WHERE {where}") == [{"id": 1}]
    assert sent in statements[-1], statements


@pytest.mark.parametrize("text", ["it''s \\", "'' OR true OR ''", "\\"])
async def test_texts_that_could_end_early_are_compared_here(server: SparkServer, text: str) -> None:
    over = session({"t": SparkSource().resolve(server.request("orders"))})
    expected = [{"id": 1}] if text == "it''s \\" else []
    with watched("spark") as statements:
        assert await rows(over, f"SELECT id FROM t WHERE name = '{text}'") == expected
    assert "WHERE" not in statements[-1]


async def test_equal_texts_are_found_by_the_server(server: SparkServer) -> None:
    over = session({"t": SparkSource().resolve(server.request("orders"))})
    with watched("spark") as statements:
        assert await rows(over, "SELECT id FROM t WHERE name = 'b'") == [{"id": 2}]
    assert "CAST(`name` AS BINARY)" in statements[-1]


@pytest.mark.parametrize(
    ("path", "params", "type_"),
    [
        ("none", {}, "not_found"),
        ("a.b.none", {}, "not_found"),
        ('"x`; DROP TABLE orders; --"', {}, "not_found"),
        ("a.b.c.d", {}, "invalid"),
        ("t", {"spark_remote": "sc://127.0.0.1:1"}, "unavailable"),
        ("t", {"spark_remote": ""}, "invalid"),
        ("t", {"spark_remote": "grpc://127.0.0.1:1"}, "invalid"),
        ("t", {"spark_host": "127.0.0.1"}, "invalid"),
    ],
)
def test_what_cannot_be_read_has_the_code_of_its_kind(
    server: SparkServer, path: str, params: Mapping[str, str], type_: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        SparkSource().resolve(server.request_of(path, **params))
    assert caught.value.type == type_, caught.value.message
    assert "hunter2" not in caught.value.message


def test_token_is_a_password_of_the_login(server: SparkServer) -> None:
    login = SparkSource().login(server.request_of("t", spark_token="hunter3"))
    assert login["password"] == "hunter3"
    table = SparkSource().resolve(server.request("orders"))
    assert "hunter" not in repr(table)


def test_server_that_went_away_is_an_error_of_the_connection() -> None:
    with spark_server.serving() as server:
        server.load("t", pa.table({"a": [1]}))
        table = SparkSource().resolve(server.request("t"))
        server.kill()
        name = ".".join(f"`{each}`" for each in table.relation)
        found = AdbcReader().read(table, f"SELECT `a` FROM {name}", table.schema)
        with pytest.raises(QueryError, match="cannot be read: the connection failed") as caught:
            list(found)
        assert "hunter2" not in caught.value.message


def test_statement_that_is_closed_leaves_the_server_to_others(server: SparkServer) -> None:
    table = SparkSource().resolve(server.request("orders"))
    reader = AdbcReader()
    long = "SELECT count(*) AS id FROM range(1000000) AS a, range(1000000) AS b"
    found = reader.read(table, long, pa.schema([table.schema.field("id")]))
    ended = threading.Thread(target=lambda: list(found))
    ended.start()
    found.close()
    ended.join(60)
    assert not ended.is_alive()
    again = reader.read(table, "SELECT 5L AS id", pa.schema([table.schema.field("id")]))
    assert [each.to_pylist() for each in again] == [[{"id": 5}]]
    reader.close()
