"""Collections, read from FerretDB."""

import pickle
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from bson.objectid import ObjectId
from pymongo.errors import OperationFailure, ServerSelectionTimeoutError

from caraway_core.errors import DatasetError, QueryError
from caraway_core.tables import scanners
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.sources.mongodb import connecting
from caraway_plugins.sources.mongodb.source import MongodbSource
from tests.kit import mongo_server
from tests.kit.engine import rows, session
from tests.kit.mongo_server import MongoServer

MOMENT = datetime(2024, 2, 29, 12, 30, 15, 123_000, UTC)
IDS = [ObjectId(f"{number:024x}") for number in (1, 2, 3)]
DOCUMENTS: list[dict[str, Any]] = [
    {
        "_id": IDS[0], "name": "it's", "number": 1, "ratio": 0.5, "at": MOMENT, "paid": True,
        "where": {"city": "Bern", "spot": [46.9, 7]}, "tags": ["a", None], "odd": "x",
        "raw": b"\0\xff", "buyer": IDS[2],
    },
    {"_id": IDS[1], "name": "", "number": 2**60, "odd": {"deep": [1]}, "tags": [], "at": None},
    {"_id": IDS[2], "where": {"zip": "3000"}, "odd": 7, "ratio": 3},
]  # fmt: skip


@pytest.fixture(scope="module")
def orders(mongodb: MongoServer) -> MongoServer:
    mongodb.put("orders", DOCUMENTS)
    return mongodb


async def test_columns_and_rows_of_a_sample(orders: MongoServer) -> None:
    table = MongodbSource().resolve(orders.request("orders"))
    assert {each.name: each.type for each in table.schema} == {
        "_id": pa.string(), "name": pa.string(), "number": pa.int64(), "ratio": pa.float64(),
        "at": pa.timestamp("ms", "UTC"), "paid": pa.bool_(), "tags": pa.list_(pa.string()),
        "where": pa.struct(
            {"city": pa.string(), "spot": pa.list_(pa.float64()), "zip": pa.string()}
        ),
        "odd": pa.string(), "raw": pa.binary(), "buyer": pa.string(),
    }  # fmt: skip
    found = await rows(session({"t": table}), "SELECT * FROM t ORDER BY _id")
    assert found[0] == {
        **DOCUMENTS[0], "_id": str(IDS[0]), "buyer": str(IDS[2]),
        "where": {"city": "Bern", "spot": [46.9, 7.0], "zip": None},
    }  # fmt: skip
    assert [each["odd"] for each in found] == ["x", '{"deep": [1]}', "7"]
    assert (found[1]["number"], found[1]["at"], found[2]["ratio"]) == (2**60, None, 3.0)


@pytest.mark.parametrize(
    ("condition", "numbers"),
    [
        (f"_id = '{IDS[1]}'", [1]),
        (f"_id >= '{IDS[1]}'", [1, 2]),
        ("_id > '0'", [0, 1, 2]),
        (f"buyer <> '{IDS[0]}'", [0]),
        ("at = TIMESTAMPTZ '2024-02-29T12:30:15.123Z'", [0]),
        ("at > TIMESTAMPTZ '2024-02-29T12:30:15.122Z'", [0]),
        ("tags IS NOT NULL", [0, 1]),
        ("name IS NULL", [2]),
        ("odd = '7'", [2]),
        ("number = 1152921504606846976", [1]),
    ],
)
async def test_filters(orders: MongoServer, condition: str, numbers: list[int]) -> None:
    over = session({"t": MongodbSource().resolve(orders.request("orders"))})
    found = await rows(over, f"SELECT _id FROM t WHERE {condition} ORDER BY _id")
    assert found == [{"_id": str(IDS[number])} for number in numbers]


async def test_declared_columns_are_all(orders: MongoServer) -> None:
    declared = [pa.field("_id", pa.string()), pa.field("where", pa.string())]
    table = MongodbSource().resolve(orders.request("orders", *declared))
    over = session({"t": table})
    assert await rows(over, f"SELECT * FROM t WHERE _id = '{IDS[0]}'") == [
        {"_id": str(IDS[0]), "where": '{"city": "Bern", "spot": [46.9, 7]}'}
    ]


async def test_nested_fields_become_columns(orders: MongoServer) -> None:
    table = MongodbSource().resolve(orders.request("orders", mongodb_unnest_depth="1"))
    over = session({"t": table})
    assert await rows(over, "SELECT name FROM t WHERE city = 'Bern'") == [{"name": "it's"}]


async def test_names_of_paths_and_operators(mongodb: MongoServer) -> None:
    mongodb.put("dotted", [{"a": {"b": 1}}])
    declared = [pa.field("a.b", pa.int64()), pa.field("$where", pa.string())]
    over = session({"t": MongodbSource().resolve(mongodb.request("dotted", *declared))})
    assert await rows(over, 'SELECT "a.b" AS x FROM t') == [{"x": None}]
    assert await rows(over, 'SELECT "a.b" AS x FROM t WHERE "$where" = \'sleep(9)\'') == []


async def test_pages_and_limits(mongodb: MongoServer) -> None:
    mongodb.put("many", ({"number": number} for number in range(2_500)))
    table = MongodbSource().resolve(mongodb.request("many"))
    over = session({"t": table})
    expected = [{"n": 2_500, "s": sum(range(2_500))}]
    assert await rows(over, "SELECT count(*) AS n, sum(number) AS s FROM t") == expected
    batches = list(scanners.of(table).scan(table, RowRequest(["number"], limit=2)))
    assert sum(each.num_rows for each in batches) == 2
    scan = scanners.of(table).scan(table, RowRequest(["number"]))
    some = iter(scan)
    assert next(some).num_rows == 1_000
    scan.close()
    assert list(some) == []


async def test_value_that_does_not_fit_is_an_error(mongodb: MongoServer) -> None:
    mongodb.put("unfit", [{"x": [1]}])
    table = MongodbSource().resolve(mongodb.request("unfit", pa.field("x", pa.int64())))
    with pytest.raises(QueryError, match=r"'x' that does not fit int64 .*declare"):
        await rows(session({"t": table}), "SELECT x FROM t")


@pytest.mark.parametrize(
    ("path", "params", "type_"),
    [
        ("none", {}, "not_found"),
        ("x'; db.dropDatabase(); //", {}, "not_found"),
        ("", {}, "invalid"),
        ("orders", {"mongodb_db": "other"}, "not_found"),
        ("orders", {"mongodb_db": ""}, "invalid"),
        ("orders", {"mongodb_db": "a b.c"}, "invalid"),
        ("orders", {"mongodb_host": ""}, "invalid"),
        ("orders", {"mongodb_port": "1", "client_timeout": "1s"}, "unavailable"),
        ("orders", {"mongodb_sslmode": "required", "client_timeout": "1s"}, "unavailable"),
        ("orders", {"mongodb_sslmode": "other"}, "invalid"),
        ("orders", {"mongodb_sslmode": "required", "mongodb_sslrootcert": "none.pem"}, "invalid"),
        ("orders", {"mongodb_connection_string": "mysql://u:hunter2@h/x"}, "invalid"),
        ("orders", {"mongodb_connection_string": "mongodb://u:hunter2@@h/x"}, "invalid"),
        ("orders", {"mongodb_connection_string": "mongodb://u:hunter2@127.0.0.1:1/x",
                    "client_timeout": "1s"}, "unavailable"),
        ("orders", {"unnest_depth": "-1"}, "invalid"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_has_the_code_of_its_kind(
    orders: MongoServer, path: str, params: Mapping[str, str], type_: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        MongodbSource().resolve(orders.request(path, **params))
    assert caught.value.type == type_, caught.value.message
    assert "hunter2" not in caught.value.message


async def test_connection_string(orders: MongoServer) -> None:
    params = {**dict.fromkeys(orders.params(), ""), "client_timeout": "10s"}
    address = f"{orders.address}test?appName=caraway"
    request = orders.request("orders", **params, mongodb_connection_string=address)
    table = MongodbSource().resolve(request)
    assert await rows(session({"t": table}), "SELECT count(*) AS n FROM t") == [{"n": 3}]
    assert address not in repr(table) and pickle.loads(pickle.dumps(table)) == table


def test_server_that_dies_while_rows_flow_is_an_error() -> None:
    with mongo_server.serving() as server:
        server.put("many", ({"text": "x" * 100} for _ in range(5_000)))
        table = MongodbSource().resolve(server.request("many", client_timeout="1s"))
        batches = iter(scanners.of(table).scan(table, RowRequest(["text"])))
        next(batches)
        server.kill()
        with pytest.raises(QueryError, match="the connection failed"):
            list(batches)


@pytest.mark.parametrize(
    ("error", "type_"),
    [
        (OperationFailure("bad auth hunter2", 18), "auth"),
        (OperationFailure("not allowed", 13), "auth"),
        (OperationFailure("interrupted", 11601), "unavailable"),
        (ServerSelectionTimeoutError("hunter2"), "unavailable"),
    ],
)
def test_refusals_have_the_code_of_their_kind(error: Exception, type_: str) -> None:
    login = connecting.MongoLogin("127.0.0.1", "test", {"serverSelectionTimeoutMS": 1})
    with pytest.raises(DatasetError) as caught, connecting.connected(login, "it"):
        raise error
    assert caught.value.type == type_
    assert "hunter2" not in caught.value.message
