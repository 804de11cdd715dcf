"""Rows from a topic of plain JSON messages, over librdkafka's mock cluster."""

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.changes import OP, Op
from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.change_sources import ChangeRequest
from caraway_core.tables import Twice
from caraway_plugins.changes.kafka.source import KafkaChanges
from tests.kit.kafka import Cluster, brokers

_NUMBERS = itertools.count(1)
COLUMNS = (pa.field("id", pa.int64()), pa.field("note", pa.string()))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with brokers() as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"rows{next(_NUMBERS)}"


def source(
    servers: str,
    topic: str,
    columns: Sequence[pa.Field] = COLUMNS,
    key: tuple[str, ...] = (),
    twice: Twice = "last",
) -> KafkaChanges:
    params = {"kafka_bootstrap_servers": servers}
    request = ChangeRequest(TableName("d"), "kafka", topic, params, tuple(columns), key, twice)
    return KafkaChanges(request)


async def read(
    changes: KafkaChanges, most: int, position: str | None = None
) -> tuple[list[dict[str, Any]], str]:
    """Return at least as many changes, without truncations, and the position after them."""
    found: list[dict[str, Any]] = []
    async with aclosing(changes.batches(position)) as batches:
        while len(found) < most:
            batch = await anext(batches)
            position = batch.position
            rows = batch.changes.rows.to_pylist()
            found += [row for row in rows if row[OP] != Op.TRUNCATE]
    await changes.aclose()
    assert position is not None
    return found, position


def notes(found: list[dict[str, Any]]) -> list[Any]:
    return [row["note"] for row in found]


async def test_each_message_is_a_row(cluster: Cluster, topic: str) -> None:
    cluster.send(topic, {"id": 1, "note": "a"}, {"id": 1, "note": "a"}, {"note": "b", "id": None})
    found, _ = await read(source(cluster.servers, topic), 3)
    assert notes(found) == ["a", "a", "b"] and {row[OP] for row in found} == {Op.INSERT}


async def test_it_goes_on_after_the_rows_that_it_has(cluster: Cluster, topic: str) -> None:
    cluster.send(topic, {"id": 1, "note": "a"})
    _, position = await read(source(cluster.servers, topic), 1)
    assert json.loads(position)["offsets"] == {"0": 1}
    cluster.send(topic, {"id": 2, "note": "b"})
    found, _ = await read(source(cluster.servers, topic), 1, position)
    assert notes(found) == ["b"]


@pytest.mark.parametrize(("twice", "op"), [("last", Op.UPSERT), ("first", Op.KEEP)])
async def test_a_key_makes_later_messages_replace_rows(
    twice: Twice, op: Op, cluster: Cluster, topic: str
) -> None:
    cluster.send(topic, {"id": 1, "note": "a"})
    found, _ = await read(source(cluster.servers, topic, key=("id",), twice=twice), 1)
    assert [row[OP] for row in found] == [op]


async def test_fields_that_are_not_declared_are_left_out(cluster: Cluster, topic: str) -> None:
    cluster.send(topic, {"id": 1, "note": "a", "more": {"op": "d"}, "op": "t", "payload": 1})
    found, _ = await read(source(cluster.servers, topic), 1)
    assert [{name: row[name] for name in ("id", "note")} for row in found] == [
        {"id": 1, "note": "a"}
    ]


async def test_columns_are_those_of_the_first_messages(cluster: Cluster, topic: str) -> None:
    cluster.send(topic, {"id": 1, "price": 1.5, "at": {"x": [1]}})
    changes = source(cluster.servers, topic, ())
    found, position = await read(changes, 1)
    assert (found[0]["id"], found[0]["price"], found[0]["at"]) == (1, 1.5, '{"x":[1]}')
    assert json.loads(position)["offsets"] == {"0": 1}


async def test_messages_over_several_lines_are_rows(cluster: Cluster, topic: str) -> None:
    cluster.send(topic, json.dumps({"id": 1, "note": "a\nb"}, indent=1).encode(), {"id": 2})
    found, _ = await read(source(cluster.servers, topic), 2)
    assert notes(found) == ["a\nb", None]


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"[]",
        b'[{"id": 3}]',
        b'"text"',
        b"{",
        b'{"id": 3}, {"id": 4}',
        b'{"id": 3}\n{"id": 4}',
        b'{"id": 3}, "op": "d", "before": {"id": 1}',
        b'{"id": 3, "id": 4}',
        b'{"id": "x"}',
        b'{"id": 1.5}',
        b"\xff",
    ],
)
async def test_a_message_that_is_not_a_row_stops_after_those_before_it(
    bad: bytes, cluster: Cluster, topic: str
) -> None:
    cluster.send(topic, {"id": 1, "note": "a"}, bad, {"id": 2, "note": "b"})
    found: list[Any] = []
    async with aclosing(source(cluster.servers, topic).batches(None)) as batches:
        with pytest.raises(DatasetError, match=rf"'{topic}', partition 0, offset 1: "):
            while True:
                found += notes((await anext(batches)).changes.rows.to_pylist())
    assert found == [None, "a"]


def test_a_topic_is_needed() -> None:
    with pytest.raises(DatasetError, match="write 'kafka:<topic>'"):
        source("localhost:1", "")
