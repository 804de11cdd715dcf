"""Changes from a topic, over librdkafka's mock cluster."""

import io
import itertools
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from caraway_core.changes import Op
from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.change_sources import ChangeRequest, PositionLostError, SourceBatch
from caraway_plugins.changes.kafka.source import KafkaChanges, KafkaLimits
from tests.kit.following import Replica
from tests.kit.kafka import Cluster, brokers

_NUMBERS = itertools.count(1)
COLUMNS = (pa.field("id", pa.int64()), pa.field("note", pa.string()))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with brokers() as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"events{next(_NUMBERS)}"


def created(id_: int, note: str | None) -> dict[str, Any]:
    return {"op": "c", "before": None, "after": {"id": id_, "note": note}}


def deleted(id_: int) -> dict[str, Any]:
    return {"op": "d", "before": {"id": id_}, "after": None}


def source(
    servers: str, topic: str, limits: KafkaLimits | None = None, **params: str
) -> KafkaChanges:
    given = {"kafka_bootstrap_servers": servers, **params}
    request = ChangeRequest(TableName("d"), "debezium", topic, given, COLUMNS, ("id",))
    return KafkaChanges(request, limits)


@asynccontextmanager
async def following(
    changes: KafkaChanges, position: str | None = None
) -> AsyncIterator[AsyncGenerator[SourceBatch, None]]:
    batches = changes.batches(position)
    try:
        yield batches
    finally:
        await batches.aclose()
        await changes.aclose()


async def fill(
    batches: AsyncGenerator[SourceBatch, None], replica: Replica, rows: dict[int, str | None]
) -> None:
    """Apply batches until the dataset has these rows."""
    while {key[0]: row["note"] for key, row in replica.rows.items()} != rows:
        batch = await anext(batches)
        replica.apply(batch.changes, batch.position)


async def test_events_of_all_partitions_are_read(cluster: Cluster, topic: str) -> None:
    cluster.send(topic, created(1, "one"), created(2, "two"), deleted(1), None, partition=0)
    cluster.send(topic, created(3, "three"), partition=2)
    replica = Replica("id")
    async with following(source(cluster.servers, topic)) as batches:
        await fill(batches, replica, {2: "two", 3: "three"})
        assert replica.ops[0] is Op.TRUNCATE
        cluster.send(topic, created(4, None), partition=3)
        await fill(batches, replica, {2: "two", 3: "three", 4: None})
    assert replica.position is not None
    assert json.loads(replica.position) == {
        "topic": topic,
        "offsets": {"0": 4, "2": 1, "3": 1},
    }


async def test_it_goes_on_after_what_was_applied(cluster: Cluster, topic: str) -> None:
    cluster.send(topic, created(1, "one"))
    replica = Replica("id")
    async with following(source(cluster.servers, topic)) as batches:
        await fill(batches, replica, {1: "one"})
        cluster.send(topic, created(2, "two"))
        await anext(batches)  # This batch is never applied.
    replica.ops.clear()
    cluster.send(topic, created(3, "three"))
    async with following(source(cluster.servers, topic), replica.position) as batches:
        await fill(batches, replica, {1: "one", 2: "two", 3: "three"})
    assert replica.ops == [Op.UPSERT, Op.UPSERT]


async def test_a_batch_says_when_its_last_event_was_written(cluster: Cluster, topic: str) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    cluster.send(topic, created(1, "one"))
    async with following(source(cluster.servers, topic)) as batches:
        made = [(await anext(batches)).made_at for _ in range(2)]
    assert made[0] is None and made[1] is not None
    assert before <= made[1] <= datetime.now(UTC)


async def test_batches_are_bounded(cluster: Cluster, topic: str) -> None:
    cluster.send(topic, *(created(number, "x") for number in range(100)))
    async with following(source(cluster.servers, topic, KafkaLimits(batch_events=30))) as batches:
        sizes = [(await anext(batches)).changes.received for _ in range(4)]
    assert max(sizes) <= 30


async def test_only_tombstones_move_the_position(cluster: Cluster, topic: str) -> None:
    cluster.send(topic, None, None)
    async with following(
        source(cluster.servers, topic), json.dumps({"topic": topic, "offsets": {}})
    ) as batches:
        assert (await anext(batches)).position == json.dumps({"topic": topic, "offsets": {}})
        batch = await anext(batches)
    assert batch.changes.rows.num_rows == 0
    assert json.loads(batch.position)["offsets"]["0"] >= 1


async def test_a_bad_event_stops_the_stream_behind_the_good_ones(
    cluster: Cluster, topic: str
) -> None:
    cluster.send(topic, created(1, "one"), {"op": "c", "after": {"id": "x"}}, created(2, "two"))
    replica = Replica("id")
    async with following(source(cluster.servers, topic)) as batches:
        await fill(batches, replica, {1: "one"})
        with pytest.raises(DatasetError, match=rf"'{topic}', partition 0, offset 1: .*'id'"):
            await anext(batches)
    async with following(source(cluster.servers, topic), replica.position) as batches:
        await anext(batches)
        with pytest.raises(DatasetError, match="offset 1"):
            await anext(batches)


async def test_events_that_take_several_lines_are_read(cluster: Cluster, topic: str) -> None:
    cluster.send(topic, json.dumps(created(1, "one"), indent=1).encode(), created(2, "two"))
    async with following(source(cluster.servers, topic)) as batches:
        await fill(batches, Replica("id"), {1: "one", 2: "two"})


async def test_avro_is_read_by_the_schema_of_the_dataset(cluster: Cluster, topic: str) -> None:
    row = {
        "type": "record",
        "name": "row",
        "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
    }
    schema = {
        "type": "record",
        "name": "event",
        "fields": [
            {"name": "op", "type": "string"},
            {"name": "before", "type": ["null", row]},
            {"name": "after", "type": ["null", "row"]},
        ],
    }
    for event in (created(1, "one"), created(2, None)):
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), event)
        cluster.send(topic, stream.getvalue())
    changes = source(
        cluster.servers, topic, debezium_message_format="avro", avro_schema=json.dumps(schema)
    )
    async with following(changes) as batches:
        await fill(batches, Replica("id"), {1: "one", 2: None})


async def test_messages_that_are_gone_are_an_error_that_says_what_to_do(
    cluster: Cluster, topic: str
) -> None:
    cluster.send(topic, created(1, "one"))
    position = json.dumps({"topic": topic, "offsets": {"0": 99}})
    async with following(source(cluster.servers, topic), position) as batches:
        await anext(batches)
        with pytest.raises(
            DatasetError, match=r"partition 0: .* no longer available; .*kafka_offset_reset"
        ):
            await anext(batches)
    changes = source(cluster.servers, topic, kafka_offset_reset="earliest")
    async with following(changes, position) as batches:
        await fill(batches, Replica("id"), {1: "one"})


async def test_a_position_of_another_topic_is_lost(cluster: Cluster, topic: str) -> None:
    position = json.dumps({"topic": "other", "offsets": {"0": 1}})
    async with following(source(cluster.servers, topic), position) as batches:
        with pytest.raises(PositionLostError, match="from topic 'other'"):
            await anext(batches)


async def test_brokers_that_are_away_are_an_error(topic: str) -> None:
    with brokers() as cluster:
        servers = cluster.servers
        cluster.send(topic, created(1, "one"))
        changes = source(servers, topic)
        batches = changes.batches(None)
        # The first one empties the dataset, and nothing is read for it.
        for _ in range(2):
            await anext(batches)
        del cluster
    with pytest.raises(DatasetError, match="Kafka does not respond") as told:
        await anext(batches)
    await batches.aclose()
    assert told.value.type == "unavailable"


async def test_offsets_are_told_to_a_group_that_is_named(cluster: Cluster, topic: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    from tests.kit.deadlines import eventually

    cluster.send(topic, created(1, "one"))
    changes = source(cluster.servers, topic, kafka_consumer_group_id="watched")
    async with following(changes) as batches:
        await changes.confirm((await anext(batches)).position)
        await changes.confirm((await anext(batches)).position)
        watcher = Consumer({"bootstrap.servers": cluster.servers, "group.id": "watched"})
        try:

            async def told() -> bool:
                (found,) = watcher.committed([TopicPartition(topic, 0)], timeout=60)
                return bool(found.offset == 1)

            await eventually(told, "the group knows the offset")
        finally:
            watcher.close()


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"kafka_bootstrap_server": "x"}, "did you mean 'kafka_bootstrap_servers'"),
        ({"debezium_transport": "pulsar"}, "give one of: kafka"),
        ({"debezium_message_format": "avro"}, "schema_registry_url or params.avro_schema"),
        ({"kafka_security_protocol": "SASL_SSL"}, "kafka_sasl_username is missing"),
        ({"kafka_offset_reset": "latest"}, "give one of: error, earliest"),
    ],
)
def test_wrong_params_are_refused(params: dict[str, str], said: str) -> None:
    with pytest.raises(DatasetError, match=said):
        source("localhost:1", "t", None, **params)


def test_passwords_are_not_shown() -> None:
    changes = source("localhost:1", "t", kafka_sasl_username="u", kafka_sasl_password="hidden")
    assert "hidden" not in repr(changes._settings)
