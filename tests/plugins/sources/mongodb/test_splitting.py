"""Ranges of ids that have each document of a collection once."""

import pickle
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from bson.objectid import ObjectId
from pymongo.errors import OperationFailure

from caraway_core.tables import scanners
from caraway_core.tables.scanners import ColumnFilter, RowRequest
from caraway_plugins.sources import key_ranges
from caraway_plugins.sources.documents.table import DocumentTable
from caraway_plugins.sources.mongodb import splitting
from caraway_plugins.sources.mongodb.source import MongodbSource
from tests.kit import mongo_server, mongo_streams
from tests.kit.mongo_server import MongoServer

SERVERS = [mongo_server.serving, mongo_streams.serving]
OBJECT_IDS = [ObjectId(f"{number * 7919:024x}") for number in range(500)]
STRANGE: list[Any] = ["a", 7, 2**40, 7.5, None, {"k": 1}, True]


@pytest.fixture(scope="module", params=SERVERS, ids=["ferretdb", "java"])
def server(request: pytest.FixtureRequest) -> Iterator[MongoServer]:
    serve: Callable[[], AbstractContextManager[MongoServer]] = request.param
    with serve() as served:
        yield served


def sized(count: int) -> int:
    return count * key_ranges.SPLIT_BYTES


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        (OBJECT_IDS, "objectId"),
        (list(range(500)), "int"),
        ([f"k{number}" for number in range(500)], "string"),
        ([*OBJECT_IDS, "a", 5], "objectId"),
    ],
)
def test_parts_are_of_the_most_frequent_kind(ids: list[Any], kind: str) -> None:
    drawn = random.Random(3).sample(ids, len(ids))
    parts = splitting.cut(drawn, sized(4), is_collated=False)
    assert [each.kind for each in parts] == [kind] * 4
    assert (parts[0].low, parts[-1].high) == (None, None)
    assert [each.high for each in parts[:-1]] == [each.low for each in parts[1:]]
    assert sum(each.size_bytes for each in parts) == sized(4)
    assert len({each.name for each in parts}) == 4
    assert pickle.loads(pickle.dumps(parts)) == parts


@pytest.mark.parametrize(
    ("ids", "size", "is_collated"),
    [
        ([], sized(9), False),
        (OBJECT_IDS, sized(2) - 1, False),
        (OBJECT_IDS[:2], sized(9), False),
        ([*OBJECT_IDS[:300], *range(100)], sized(9), False),
        ([float(each) for each in range(100)], sized(9), False),
        ([f"k{number}" for number in range(500)], sized(9), True),
        ([True, False] * 9, sized(9), False),
    ],
)
def test_other_collections_have_no_parts(ids: list[Any], size: int, is_collated: bool) -> None:
    assert splitting.cut(ids, size, is_collated=is_collated) == ()


def test_there_are_not_too_many_parts() -> None:
    parts = splitting.cut(OBJECT_IDS, sized(10_000), is_collated=False)
    assert len(parts) == key_ranges.MOST_SPLITS


class Refusing:
    """A collection of a user who may not look at its size."""

    name = "c"

    @property
    def database(self) -> Any:
        raise OperationFailure("not authorized")


def test_a_server_that_does_not_say_the_size_has_no_parts() -> None:
    assert splitting.splits(Refusing(), is_collated=False) == (0, ())


def resolved(server: MongoServer, ids: list[Any], monkeypatch: pytest.MonkeyPatch) -> DocumentTable:
    server.put("parts", ({"_id": id_, "n": number} for number, id_ in enumerate(ids)))
    monkeypatch.setattr(key_ranges, "SPLIT_BYTES", 1_000)
    return MongodbSource().resolve(server.request("parts"))


def read(table: DocumentTable, *numbers: int, filters: tuple[ColumnFilter, ...] = ()) -> list[int]:
    parts = [table.splits[number] for number in numbers]
    request = RowRequest(["n"], parts, filters)
    batches = scanners.of(table).scan(table, request)
    return [n for batch in batches for n in batch.column("n").to_pylist()]


@pytest.mark.parametrize("kind", ["objectId", "int", "string"])
def test_each_document_is_in_one_part(
    server: MongoServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    known: dict[str, list[Any]] = {
        "objectId": OBJECT_IDS,
        "int": [number * 2**33 + 3 for number in range(-250, 250)],
        "string": [f"k{number}é" for number in range(500)],
    }
    ids = [*known[kind], *STRANGE]
    table = resolved(server, ids, monkeypatch)
    count = len(table.splits)
    assert count > 3
    each = [read(table, number) for number in range(count)]
    assert sorted(n for part in each for n in part) == list(range(len(ids)))
    assert max(map(len, each)) < len(ids) / 2
    assert sorted(read(table, *range(0, count, 2))) == sorted(n for part in each[::2] for n in part)
    above = (ColumnFilter("n", ">=", 100),)
    assert sorted(n for number in range(count) for n in read(table, number, filters=above)) == list(
        range(100, len(ids))
    )
    assert sorted(read(table)) == list(range(len(ids)))
