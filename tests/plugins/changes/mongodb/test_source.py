"""Collections of MongoDB that are followed, over a server with change streams."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from caraway_core.changes import Op
from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.change_sources import ChangeRequest, PositionLostError, SourceBatch
from caraway_plugins.changes.mongodb import streaming
from caraway_plugins.changes.mongodb.source import MongodbChanges, MongoPosition
from caraway_plugins.changes.mongodb.streaming import StreamPage
from tests.kit import mongo_server, mongo_streams
from tests.kit.following import Replica
from tests.kit.mongo_server import MongoServer

_LONG_S = 60
COLUMNS = (pa.field("_id", pa.int64()), pa.field("note", pa.string()))


@pytest.fixture(scope="module")
def server() -> Iterator[MongoServer]:
    with mongo_streams.serving() as made:
        yield made


@pytest.fixture
def orders(server: MongoServer) -> Any:
    """A collection with two documents, whose name no other test has."""
    return put(server, [{"_id": 1, "note": "one"}, {"_id": 2}])


def put(server: MongoServer, documents: Iterable[Mapping[str, Any]]) -> Any:
    """Create a collection with documents and a new name, as its drop would be a change."""
    name = f"orders_{uuid4().hex}"
    server.put(name, documents)
    return server.client.test[name]


def source(
    server: MongoServer,
    orders: Any,
    declared: Sequence[pa.Field] = COLUMNS,
    key: tuple[str, ...] = (),
    clock: Any = None,
    **params: str,
) -> MongodbChanges:
    request = ChangeRequest(
        TableName("d"), "mongodb", orders.name, {**server.params(), **params}, tuple(declared), key
    )
    return MongodbChanges(request) if clock is None else MongodbChanges(request, clock)


class Follower:
    """Applies batches until the rows are some others."""

    def __init__(self, batches: AsyncGenerator[SourceBatch, None]) -> None:
        self.replica = Replica("_id")
        self.is_whole = False
        self._batches = batches

    async def take(self) -> SourceBatch:
        batch = await anext(self._batches)
        self.replica.apply(batch.changes, batch.position)
        self.is_whole = batch.is_whole
        return batch

    async def notes(self, expected: Mapping[Any, str | None]) -> None:
        """Take batches until the dataset is whole and has these rows."""
        async with asyncio.timeout(_LONG_S):
            while not self.is_whole or self._notes() != expected:
                await self.take()

    def _notes(self) -> Mapping[Any, Any]:
        return {key[0]: row["note"] for key, row in self.replica.rows.items()}


async def test_documents_are_loaded_and_then_followed(server: MongoServer, orders: Any) -> None:
    async with aclosing(source(server, orders).batches(None)) as batches:
        follower = Follower(batches)
        first = await follower.take()
        assert follower.replica.ops == [Op.TRUNCATE, Op.UPSERT, Op.UPSERT]
        assert not first.is_whole
        await follower.notes({1: "one", 2: None})
        orders.insert_one({"_id": 3, "note": "three"})
        orders.update_one({"_id": 1}, {"$set": {"note": "uno"}})
        orders.delete_one({"_id": 2})
        await follower.notes({1: "uno", 3: "three"})
        orders.replace_one({"_id": 3}, {"other": 1})
        await follower.notes({1: "uno", 3: None})


async def test_stored_position_continues_exactly_there(server: MongoServer, orders: Any) -> None:
    async with aclosing(source(server, orders).batches(None)) as batches:
        follower = Follower(batches)
        await follower.notes({1: "one", 2: None})
        orders.insert_one({"_id": 3, "note": "three"})
        await follower.notes({1: "one", 2: None, 3: "three"})
        position = follower.replica.position
    orders.insert_one({"_id": 4, "note": "four"})
    orders.delete_one({"_id": 2})
    async with aclosing(source(server, orders).batches(position)) as batches:
        resumed = Follower(batches)
        resumed.replica.rows = follower.replica.rows
        await resumed.notes({1: "one", 3: "three", 4: "four"})
        assert resumed.replica.ops == [Op.UPSERT, Op.DELETE]


async def test_changes_during_the_load_are_not_lost(server: MongoServer) -> None:
    orders = put(server, ({"_id": number, "note": "x"} for number in range(3_000)))
    async with aclosing(source(server, orders).batches(None)) as batches:
        follower = Follower(batches)
        await follower.take()
        orders.update_one({"_id": 1}, {"$set": {"note": "y"}})
        orders.delete_one({"_id": 2_999})
        orders.insert_one({"_id": 9_000, "note": "z"})
        expected = dict.fromkeys(range(2_999), "x") | {1: "y", 9_000: "z"}
        await follower.notes(expected)


async def test_load_that_was_interrupted_begins_again(server: MongoServer, orders: Any) -> None:
    async with aclosing(source(server, orders).batches(None)) as batches:
        position = (await Follower(batches).take()).position
    async with aclosing(source(server, orders).batches(position)) as batches:
        follower = Follower(batches)
        await follower.take()
        assert follower.replica.ops[0] == Op.TRUNCATE
        await follower.notes({1: "one", 2: None})


async def test_collection_without_documents(server: MongoServer) -> None:
    orders = put(server, [])
    async with aclosing(source(server, orders).batches(None)) as batches:
        follower = Follower(batches)
        await follower.notes({})
        assert follower.replica.ops == [Op.TRUNCATE]
        orders.insert_one({"_id": 1, "note": "one"})
        await follower.notes({1: "one"})


async def test_keys_of_several_types_are_texts(server: MongoServer) -> None:
    orders = put(server, [{"_id": 1, "note": "one"}, {"_id": "a", "note": "two"}])
    declared = (pa.field("_id", pa.string()), COLUMNS[1])
    async with aclosing(source(server, orders, declared).batches(None)) as batches:
        follower = Follower(batches)
        await follower.notes({"1": "one", "a": "two"})
        orders.delete_one({"_id": 1})
        await follower.notes({"a": "two"})


@pytest.mark.parametrize(
    ("position", "words"),
    [
        ('["{}","0000000000000000",false]', "no longer the changes"),
        ('["others","00",false]', "another collection"),
        ("{{}}", "not one of MongoDB"),
        ("[1,2]", "not one of MongoDB"),
        ("x", "not one of MongoDB"),
    ],
)
async def test_positions_that_are_lost(
    server: MongoServer, orders: Any, position: str, words: str
) -> None:
    with pytest.raises(PositionLostError, match=words):
        await anext(source(server, orders).batches(position.format(orders.name)))


async def test_collection_that_is_dropped_is_loaded_again(server: MongoServer, orders: Any) -> None:
    async with aclosing(source(server, orders).batches(None)) as batches:
        follower = Follower(batches)
        await follower.notes({1: "one", 2: None})
        orders.drop()
        with pytest.raises(PositionLostError, match="dropped or renamed; reloading"):
            await follower.take()


async def test_position_of_a_quiet_collection_is_told(
    server: MongoServer, orders: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = iter([*(StreamPage((), f"{number}") for number in range(6))])
    monkeypatch.setattr(streaming, "stream", lambda _reads, _token: (p for p in pages))
    times = iter([0.0, 30.0, 61.0, 61.0, 100.0])
    position = MongoPosition(orders.name, "a").text()
    async with aclosing(
        source(server, orders, clock=lambda: next(times)).batches(position)
    ) as batches:
        assert (await anext(batches)).position == position
        told = await anext(batches)
        assert told.position == MongoPosition(orders.name, "2").text()
        assert told.is_whole and not told.changes.rows.num_rows


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"declared": COLUMNS[1:]}, "no column '_id'"),
        ({"key": ("note",)}, "has the key _id"),
    ],
)
async def test_what_cannot_be_followed(
    server: MongoServer, orders: Any, given: Any, words: str
) -> None:
    with pytest.raises(DatasetError, match=words):
        await source(server, orders, **given).schema()
    orders.drop()
    with pytest.raises(DatasetError, match="does not exist"):
        await source(server, orders).schema()


async def test_the_key_and_the_columns(server: MongoServer, orders: Any) -> None:
    followed = source(server, orders, declared=())
    assert (await followed.schema()).names == ["_id", "note"]
    assert await followed.primary_key() == ("_id",)


async def test_server_without_change_streams() -> None:
    with mongo_server.serving() as server:
        orders = put(server, [{"_id": 1, "note": "one"}])
        with pytest.raises(DatasetError, match="no change stream") as caught:
            await anext(source(server, orders).batches(None))
        assert caught.value.type == "unsupported"


async def test_server_that_ends(server: MongoServer) -> None:
    with mongo_streams.serving() as other:
        orders = put(other, [{"_id": 1, "note": "one"}])
        async with aclosing(source(other, orders, client_timeout="2s").batches(None)) as batches:
            follower = Follower(batches)
            await follower.notes({1: "one"})
            other.kill()
            with pytest.raises(DatasetError) as caught:
                await follower.take()
            assert caught.value.type == "unavailable"
