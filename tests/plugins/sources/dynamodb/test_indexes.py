"""Tables of DynamoDB with secondary indexes have the same rows, and read fewer items."""

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from caraway_core.tables import MemoryTable
from caraway_plugins.sources.dynamodb import connecting
from caraway_plugins.sources.dynamodb.source import DynamodbSource
from tests.kit.dynamodb_server import DynamodbServer
from tests.kit.engine import rows, session

ITEMS = [
    {"pk": n, "city": "abc"[n % 3], "at": n, "v": f"v{n}"} for n in range(30)
] + [{"pk": 100, "city": "a", "v": "without at"}, {"pk": 101, "at": 5}]  # fmt: skip


def _index(name: str, *key: str, kind: str = "ALL") -> dict[str, Any]:
    parts = zip(key, ("HASH", "RANGE"), strict=False)
    schema = [{"AttributeName": each, "KeyType": role} for each, role in parts]
    return {
        "IndexName": name, "KeySchema": schema, "Projection": {"ProjectionType": kind},
    }  # fmt: skip


@pytest.fixture(scope="module")
def server(dynamodb: DynamodbServer) -> DynamodbServer:
    dynamodb.create(
        "indexed", {"pk": "N"}, {"city": "S", "at": "N"},
        GlobalSecondaryIndexes=[
            _index("by_both", "city", "at"), _index("keys", "city", kind="KEYS_ONLY"),
        ],
    )  # fmt: skip
    dynamodb.put("indexed", ITEMS)
    return dynamodb


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note the index of each query, and each scan."""
    noted: list[str] = []
    real = connecting.call

    def call(client: Any, operation: str, title: str, **request: Any) -> Any:
        if operation in ("query", "scan"):
            noted.append(request.get("IndexName", operation))
        return real(client, operation, title, **request)

    monkeypatch.setattr(connecting, "call", call)
    return noted


@pytest.mark.parametrize(
    ("where", "read", "index"),
    [
        ("city = 'a' AND at > 20", "*", "by_both"),
        ("city = 'a' AND at BETWEEN 3 AND 9 AND v <> 'v3'", "v", "by_both"),
        ("city = 'a'", "pk", "keys"),
        ("city = 'a'", "pk, v", "scan"),
        ("city = 'a' AND pk = 3", "v", "query"),
        ("at = 5", "pk", "scan"),
    ],
)
async def test_rows_are_the_same(
    server: DynamodbServer, asked: list[str], where: str, read: str, index: str
) -> None:
    table = DynamodbSource().resolve(server.request("indexed"))
    asked.clear()
    over = session({"t": table})
    found = await rows(over, f"SELECT {read} FROM t WHERE {where} ORDER BY pk")
    assert set(asked) == {index}
    every = await rows(over, f"SELECT {read} FROM (SELECT * FROM t LIMIT 1000) WHERE {where} "
                             "ORDER BY pk")  # fmt: skip
    assert found == every != []


async def test_an_index_that_may_not_be_read(
    server: DynamodbServer, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = DynamodbSource().resolve(server.request("indexed"))
    real = connecting.call

    def refused(client: Any, operation: str, title: str, **request: Any) -> Any:
        if "IndexName" in request:
            raise DatasetError("auth", "no right")
        return real(client, operation, title, **request)

    monkeypatch.setattr(connecting, "call", refused)
    asked.clear()
    found = await rows(session({"t": table}), "SELECT pk FROM t WHERE city = 'a' AND at < 4")
    assert sorted(each["pk"] for each in found) == [0, 3]
    assert set(asked) == {"scan"}


def _some(drawn: random.Random) -> dict[str, Any]:
    item = {
        "pk": drawn.randrange(6), "sk": drawn.randrange(8), "city": drawn.choice("abc"),
        "at": drawn.randrange(6), "v": drawn.choice("xyz"),
    }  # fmt: skip
    for each in ("city", "at", "v"):
        if drawn.random() < 0.25:
            del item[each]
    return item


def _where(drawn: random.Random) -> str:
    tests: list[Callable[[], str]] = [
        lambda: f"city = '{drawn.choice('abcd')}'", lambda: f"at >= {drawn.randrange(6)}",
        lambda: f"at = {drawn.randrange(6)}", lambda: f"pk = {drawn.randrange(7)}",
        lambda: f"sk < {drawn.randrange(8)}", lambda: f"v <> '{drawn.choice('xyz')}'",
        lambda: "at IS NOT NULL", lambda: f"city IN ('a', '{drawn.choice('bc')}')",
    ]  # fmt: skip
    return " AND ".join(each() for each in drawn.sample(tests, drawn.randrange(1, 4)))


async def test_random_filters_have_the_answers_of_the_engine(
    dynamodb: DynamodbServer, asked: list[str]
) -> None:
    drawn = random.Random(5)
    items = {(each["pk"], each["sk"]): each for each in (_some(drawn) for _ in range(60))}
    dynamodb.create(
        "several", {"pk": "N", "sk": "N"}, {"city": "S", "at": "N"},
        LocalSecondaryIndexes=[_index("local", "pk", "at")],
        GlobalSecondaryIndexes=[
            _index("by_both", "city", "at"), _index("keys", "city", kind="KEYS_ONLY"),
        ],
    )  # fmt: skip
    dynamodb.put("several", items.values())
    table = DynamodbSource().resolve(dynamodb.request("several"))
    made = pa.Table.from_pylist(list(items.values()), schema=table.schema)
    asked.clear()
    for _ in range(120):
        read = drawn.choice(["*", "sk", "city, v", "pk, at"])
        sql = f"SELECT {read} FROM t WHERE {_where(drawn)}"
        found = [
            sorted(map(repr, await rows(session({"t": each}), sql)))
            for each in (table, MemoryTable(table.schema, made))
        ]
        assert found[0] == found[1], sql
    assert set(asked) == {"scan", "query", "local", "by_both", "keys"}
