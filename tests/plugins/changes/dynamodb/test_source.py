"""Tables of DynamoDB that are followed, over moto, whose stream has one shard."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.changes import Op
from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.change_sources import ChangeRequest, PositionLostError, SourceBatch
from caraway_plugins.changes.dynamodb.source import DynamodbChanges
from tests.kit import dynamodb_server
from tests.kit.dynamodb_server import DynamodbServer
from tests.kit.following import Replica

STREAM = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}}
_LONG_S = 60
COLUMNS = [pa.field("id", pa.int64()), pa.field("note", pa.string())]


@pytest.fixture(scope="module")
def server() -> Iterator[DynamodbServer]:
    with dynamodb_server.serving() as made:
        yield made


@pytest.fixture
def orders(server: DynamodbServer) -> DynamodbServer:
    server.create("orders", {"id": "N"}, **STREAM)
    server.put("orders", [{"id": 1, "note": "one"}, {"id": 2, "note": None}])
    return server


def source(
    server: DynamodbServer,
    declared: Sequence[pa.Field] = COLUMNS,
    key: tuple[str, ...] = (),
    path: str = "orders",
    **params: str,
) -> DynamodbChanges:
    values = {**server.params(), "scan_interval": "10ms", **params}
    return DynamodbChanges(
        ChangeRequest(TableName("d"), "dynamodb", path, values, tuple(declared), key)
    )


class Follower:
    """Applies batches until the rows are some others."""

    def __init__(self, batches: AsyncGenerator[SourceBatch, None], *key: str) -> None:
        self.replica = Replica(*(key or ("id",)))
        self.is_whole = False
        self._batches = batches

    async def take(self) -> SourceBatch:
        batch = await anext(self._batches)
        self.replica.apply(batch.changes, batch.position)
        self.is_whole = batch.is_whole
        return batch

    async def notes(self, expected: Mapping[int, str | None]) -> None:
        """Take batches until the dataset is whole and has these rows."""
        async with asyncio.timeout(_LONG_S):
            while not self.is_whole or self._notes() != expected:
                await self.take()

    def _notes(self) -> Mapping[int, Any]:
        return {key[0]: row["note"] for key, row in self.replica.rows.items()}


async def test_items_are_loaded_and_then_followed(orders: DynamodbServer) -> None:
    async with aclosing(source(orders).batches(None)) as batches:
        follower = Follower(batches)
        first = await follower.take()
        assert follower.replica.ops == [Op.TRUNCATE, Op.UPSERT, Op.UPSERT]
        assert not first.is_whole
        await follower.notes({1: "one", 2: None})
        orders.put("orders", [{"id": 3, "note": "three"}, {"id": 1, "note": "uno"}])
        orders.client.delete_item(TableName="orders", Key={"id": {"N": "2"}})
        await follower.notes({1: "uno", 3: "three"})


async def test_stored_position_continues_exactly_there(orders: DynamodbServer) -> None:
    async with aclosing(source(orders).batches(None)) as batches:
        follower = Follower(batches)
        await follower.notes({1: "one", 2: None})
        position = follower.replica.position
    orders.put("orders", [{"id": 1, "note": "uno"}])
    orders.client.delete_item(TableName="orders", Key={"id": {"N": "2"}})
    async with aclosing(source(orders).batches(position)) as batches:
        resumed = Follower(batches)
        resumed.replica.rows = follower.replica.rows
        await resumed.notes({1: "uno"})
        assert resumed.replica.ops == [Op.UPSERT, Op.DELETE]


async def test_changes_during_the_load_are_not_lost(orders: DynamodbServer) -> None:
    orders.put("orders", ({"id": number, "note": "x" * 30_000} for number in range(10, 90)))
    async with aclosing(source(orders).batches(None)) as batches:
        follower = Follower(batches)
        await follower.take()
        orders.put("orders", ({"id": number, "note": "y"} for number in range(10, 90)))
        orders.client.delete_item(TableName="orders", Key={"id": {"N": "1"}})
        await follower.notes({2: None, **dict.fromkeys(range(10, 90), "y")})


async def test_load_that_was_interrupted_begins_again(orders: DynamodbServer) -> None:
    async with aclosing(source(orders).batches(None)) as batches:
        position = (await Follower(batches).take()).position
    async with aclosing(source(orders).batches(position)) as batches:
        follower = Follower(batches)
        await follower.take()
        assert follower.replica.ops[0] == Op.TRUNCATE
        await follower.notes({1: "one", 2: None})


async def test_table_without_items_is_loaded(server: DynamodbServer) -> None:
    server.create("orders", {"id": "N"}, **STREAM)
    async with aclosing(source(server).batches(None)) as batches:
        follower = Follower(batches)
        await follower.notes({})
        assert follower.replica.ops == [Op.TRUNCATE]


async def test_columns_and_key_of_the_items(server: DynamodbServer) -> None:
    server.create("lines", {"order": "S", "line": "N"}, **STREAM)
    server.put("lines", [{"order": "a", "line": 1, "odd": {"x": [1]}}])
    changes = source(server, (), path="lines")
    assert await changes.primary_key() == ("order", "line")
    assert (await changes.schema()).names == ["order", "line", "odd"]
    async with aclosing(changes.batches(None)) as batches:
        follower = Follower(batches, "order", "line")
        await follower.take()
        server.client.delete_item(TableName="lines", Key={"order": {"S": "a"}, "line": {"N": "1"}})
        async with asyncio.timeout(_LONG_S):
            while follower.replica.rows:
                await follower.take()


async def test_position_of_another_stream_is_lost(orders: DynamodbServer) -> None:
    for position in ("x", "[1]", '["arn:other",{},false]'):
        with pytest.raises(PositionLostError):
            await anext(source(orders).batches(position))


async def test_value_that_does_not_fit_is_an_error(orders: DynamodbServer) -> None:
    columns = [COLUMNS[0], pa.field("note", pa.int64())]
    with pytest.raises(DatasetError, match="'note' that does not fit int64"):
        await anext(source(orders, columns).batches(None))


@pytest.mark.parametrize(
    ("options", "columns", "key", "says"),
    [
        ({}, COLUMNS, (), "no stream with new images"),
        (
            {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}},
            COLUMNS,
            (),
            "view type NEW_IMAGE",
        ),
        (STREAM, COLUMNS[1:], (), "no column 'id'"),
        (STREAM, COLUMNS, ("note",), "has the key id"),
    ],
)
async def test_what_cannot_be_followed(
    server: DynamodbServer,
    options: Mapping[str, Any],
    columns: Sequence[pa.Field],
    key: tuple[str, ...],
    says: str,
) -> None:
    server.create("other", {"id": "N"}, **options)
    with pytest.raises(DatasetError, match=says):
        await source(server, columns, key, "other").schema()
