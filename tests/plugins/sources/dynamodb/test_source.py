"""Tables of DynamoDB, read from moto."""

import pickle
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError, QueryError
from caraway_core.tables import scanners
from caraway_core.tables.scanners import ColumnFilter, RowRequest
from caraway_plugins.sources.documents.table import DocumentTable
from caraway_plugins.sources.dynamodb import connecting
from caraway_plugins.sources.dynamodb.source import DynamodbSource
from tests.kit.dynamodb_server import DynamodbServer
from tests.kit.engine import rows, session

ITEMS: list[dict[str, Any]] = [
    {
        "customer": "ada", "number": 1, "name": "it's", "total": Decimal("12.5"), "paid": True,
        "big": 2**63, "tags": {"b", "a"}, "sizes": {Decimal("2.5"), 1}, "raw": b"\0\xff",
        "where": {"city": "Bern", "at": [Decimal("46.9"), 7]}, "odd": "x", "status": None,
        "day": "2024-02-29",
    },
    {"customer": "ada", "number": 2, "name": "", "total": 3, "odd": {"deep": [1]}},
    {"customer": "bob", "number": 1, "where": {"zip": "3000"}, "odd": 7},
]  # fmt: skip


@pytest.fixture(scope="module")
def orders(dynamodb: DynamodbServer) -> DynamodbServer:
    dynamodb.create("orders", {"customer": "S", "number": "N"})
    dynamodb.put("orders", ITEMS)
    return dynamodb


def _sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Mapping[str, Any]]]:
    """Record the requests from now on."""
    calls: list[tuple[str, Mapping[str, Any]]] = []
    call = connecting.call

    def recorded(client: Any, operation: str, title: str, **request: Any) -> Any:
        calls.append((operation, dict(request)))
        return call(client, operation, title, **request)

    monkeypatch.setattr(connecting, "call", recorded)
    return calls


async def test_login_of_the_machine(
    orders: DynamodbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    request = orders.request("orders", dynamodb_aws_auth="iam_role", dynamodb_aws_access_key_id="")
    table = DynamodbSource().resolve(request)
    assert await rows(session({"t": table}), "SELECT count(*) AS n FROM t") == [{"n": 3}]


async def test_columns_and_rows_of_a_sample(orders: DynamodbServer) -> None:
    table = DynamodbSource().resolve(orders.request("orders"))
    types = {each.name: each.type for each in table.schema}
    assert types == {
        "customer": pa.string(), "number": pa.int64(), "name": pa.string(),
        "total": pa.float64(), "paid": pa.bool_(), "big": pa.decimal128(38, 0),
        "tags": pa.list_(pa.string()), "sizes": pa.list_(pa.float64()), "raw": pa.binary(),
        "where": pa.struct(
            {"city": pa.string(), "at": pa.list_(pa.float64()), "zip": pa.string()}
        ),
        "odd": pa.string(), "status": pa.string(), "day": pa.string(),
    }  # fmt: skip
    assert await rows(session({"t": table}), "SELECT * FROM t ORDER BY customer, number") == [
        {
            "customer": "ada", "number": 1, "name": "it's", "total": 12.5, "paid": True,
            "big": Decimal(2**63), "tags": ["a", "b"], "sizes": [1.0, 2.5], "raw": b"\0\xff",
            "where": {"city": "Bern", "at": [46.9, 7.0], "zip": None}, "odd": "x",
            "status": None, "day": "2024-02-29",
        },
        {
            "customer": "ada", "number": 2, "name": "", "total": 3.0, "odd": '{"deep": [1]}',
            **dict.fromkeys(("paid", "big", "tags", "sizes", "raw", "where", "status", "day")),
        },
        {
            "customer": "bob", "number": 1, "where": {"city": None, "at": None, "zip": "3000"},
            "odd": "7", **dict.fromkeys(
                ("name", "total", "paid", "big", "tags", "sizes", "raw", "status", "day")
            ),
        },
    ]  # fmt: skip


async def test_declared_columns_are_all(orders: DynamodbServer) -> None:
    declared = [
        pa.field("total", pa.decimal128(10, 2)),
        pa.field("day", pa.date32()),
        pa.field("where", pa.string()),
    ]
    table = DynamodbSource().resolve(orders.request("orders", *declared))
    found = await rows(session({"t": table}), "SELECT * FROM t WHERE total > 5")
    assert found == [
        {
            "total": Decimal("12.50"),
            "day": date(2024, 2, 29),
            "where": '{"city": "Bern", "at": [46.9, 7]}',
        }
    ]


async def test_key_is_queried(orders: DynamodbServer, monkeypatch: pytest.MonkeyPatch) -> None:
    over = session({"t": DynamodbSource().resolve(orders.request("orders", scan_segments="4"))})
    calls = _sent(monkeypatch)
    sql = "SELECT number FROM t WHERE customer = 'ada' AND number > 1"
    assert await rows(over, sql) == [{"number": 2}]
    ((operation, request),) = calls
    assert operation == "query"
    assert request["KeyConditionExpression"] == "#n0 = :v0 AND #n1 >= :v1"
    assert sorted(request["ProjectionExpression"].split(", ")) == ["#n0", "#n1"]


async def test_items_without_the_columns_are_rows(orders: DynamodbServer) -> None:
    over = session({"t": DynamodbSource().resolve(orders.request("orders"))})
    found = await rows(over, "SELECT paid FROM t")
    assert sorted(map(str, found)) == ["{'paid': None}", "{'paid': None}", "{'paid': True}"]


async def test_segments_are_all_rows_once(orders: DynamodbServer) -> None:
    table = DynamodbSource().resolve(orders.request("orders", scan_segments="3"))
    parts = [
        batch
        for split in table.splits
        for batch in scanners.of(table).scan(table, RowRequest(["name"], [split]))
    ]
    assert len(table.splits) == 3 and sum(each.num_rows for each in parts) == len(ITEMS)
    query = RowRequest(["number"], table.splits[1:], [ColumnFilter("customer", "=", "ada")])
    assert list(scanners.of(table).scan(table, query)) == []


async def test_pages(dynamodb: DynamodbServer, monkeypatch: pytest.MonkeyPatch) -> None:
    dynamodb.create("wide", {"id": "N"})
    dynamodb.put("wide", ({"id": number, "text": "x" * 50_000} for number in range(50)))
    table = DynamodbSource().resolve(dynamodb.request("wide"))
    over = session({"t": table})
    calls = _sent(monkeypatch)
    assert await rows(over, "SELECT count(*) AS n, sum(id) AS s FROM t") == [{"n": 50, "s": 1225}]
    assert len(calls) > 2 and "ExclusiveStartKey" in calls[-1][1]
    calls.clear()
    assert len(await rows(over, "SELECT id FROM t LIMIT 2")) == 2
    assert [request.get("Limit") for _, request in calls] == [2]


async def test_rows_that_are_not_read_are_not_requested(
    dynamodb: DynamodbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    dynamodb.create("closed", {"id": "N"})
    dynamodb.put("closed", ({"id": number, "text": "x" * 50_000} for number in range(80)))
    table = DynamodbSource().resolve(dynamodb.request("closed"))
    calls = _sent(monkeypatch)
    scan = scanners.of(table).scan(table, RowRequest(["text"]))
    batches = iter(scan)
    next(batches)
    scan.close()
    assert list(batches) == [] and len(calls) <= 2


async def test_nested_fields_become_columns(orders: DynamodbServer) -> None:
    table = DynamodbSource().resolve(orders.request("orders", unnest_depth="1"))
    assert {"city", "zip", "deep"} <= {*table.schema.names}
    over = session({"t": table})
    assert await rows(over, "SELECT name FROM t WHERE city = 'Bern'") == [{"name": "it's"}]


async def test_table_without_items_has_its_key(dynamodb: DynamodbServer) -> None:
    dynamodb.create("empty", {"id": "N", "at": "S"})
    table = DynamodbSource().resolve(dynamodb.request("empty"))
    assert table.schema == pa.schema({"id": pa.int64(), "at": pa.string()})
    assert await rows(session({"t": table}), "SELECT * FROM t") == []


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("x", pa.int64()),
        (Decimal("1.5"), pa.int64()),
        (Decimal("1.23456789012345678901"), pa.float64()),
        (2**53 + 1, pa.float64()),
        (Decimal("1.234"), pa.decimal128(10, 2)),
        ("2024-13-01", pa.date32()),
        (True, pa.int64()),
    ],
)
async def test_value_that_does_not_fit_is_an_error(
    dynamodb: DynamodbServer, value: Any, type_: pa.DataType
) -> None:
    dynamodb.create("unfit", {"id": "N"})
    dynamodb.put("unfit", [{"id": 1, "x": value}])
    table = DynamodbSource().resolve(dynamodb.request("unfit", pa.field("x", type_)))
    with pytest.raises(QueryError, match=r"'x' that does not fit .*declare"):
        await rows(session({"t": table}), "SELECT x FROM t")


@pytest.mark.parametrize(
    ("path", "params", "type_"),
    [
        ("none", {}, "not_found"),
        ("", {}, "invalid"),
        ("x'; DROP TABLE orders; --", {}, "not_found"),
        ("orders", {"dynamodb_endpoint": "http://127.0.0.1:1", "client_timeout": "1s"},
         "unavailable"),
        ("orders", {"dynamodb_endpoint": "nowhere"}, "invalid"),
        ("orders", {"dynamodb_aws_secret_access_key": ""}, "invalid"),
        ("orders", {"dynamodb_aws_auth": "other"}, "invalid"),
        ("orders", {"scan_segments": "2000"}, "invalid"),
        ("orders", {"scan_segments": "x"}, "invalid"),
        ("orders", {"unnest_depth": "-1"}, "invalid"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_has_the_code_of_its_kind(
    orders: DynamodbServer, path: str, params: Mapping[str, str], type_: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        DynamodbSource().resolve(orders.request(path, **params))
    assert caught.value.type == type_, caught.value.message
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize(
    ("code", "type_"),
    [
        ("UnrecognizedClientException", "auth"),
        ("AccessDeniedException", "auth"),
        ("ProvisionedThroughputExceededException", "unavailable"),
        ("InternalServerError", "unavailable"),
    ],
)
def test_refusals_have_the_code_of_their_kind(code: str, type_: str) -> None:
    from botocore.exceptions import ClientError

    class Refusing:
        def scan(self, **_request: Any) -> None:
            message = "the key hunter2 is not valid"
            raise ClientError({"Error": {"Code": code, "Message": message}}, "Scan")

    with pytest.raises(DatasetError) as caught:
        connecting.call(Refusing(), "scan", "dynamodb table 't'")
    assert caught.value.type == type_ and code in caught.value.message
    assert "hunter2" not in caught.value.message


def test_table_goes_to_other_processes_without_its_secrets_in_texts(
    orders: DynamodbServer,
) -> None:
    table = DynamodbSource().resolve(orders.request("orders"))
    copy = pickle.loads(pickle.dumps(table))
    assert isinstance(copy, DocumentTable) and copy == table
    assert "hunter2" not in repr(table) and "AKIA" not in repr(table)
