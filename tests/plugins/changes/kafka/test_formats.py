"""Rows in Avro and Protobuf, keys of messages, and messages without a value."""

import datetime as dt
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2, wrappers_pb2

from caraway_core.changes import OP, Op
from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.change_sources import ChangeRequest
from caraway_plugins.changes.kafka.source import KafkaChanges
from tests.kit.kafka import Cluster, brokers
from tests.kit.schema_registry import Registered, avro, framed, registry

_NUMBERS = itertools.count(1)
COLUMNS = (pa.field("id", pa.int64()), pa.field("note", pa.string()))
ROW = {
    "type": "record", "name": "Row",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
}  # fmt: skip
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
Kind = descriptor_pb2.FieldDescriptorProto


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with brokers() as running:
        yield running


@pytest.fixture
def schemas() -> Iterator[Registered]:
    with registry() as made:
        made.avro(1, ROW)
        made.avro(2, KEY)
        yield made


@pytest.fixture
def topic() -> str:
    return f"formats{next(_NUMBERS)}"


def source(
    cluster: Cluster,
    topic: str,
    params: Mapping[str, str],
    columns: Sequence[pa.Field] = COLUMNS,
    key: tuple[str, ...] = ("id",),
) -> KafkaChanges:
    given = {"kafka_bootstrap_servers": cluster.servers, **params}
    return KafkaChanges(ChangeRequest(TableName("d"), "kafka", topic, given, tuple(columns), key))


async def read(changes: KafkaChanges, most: int) -> list[dict[str, Any]]:
    """Return at least as many changes, without truncations."""
    found: list[dict[str, Any]] = []
    async with aclosing(changes.batches(None)) as batches:
        while len(found) < most:
            rows = (await anext(batches)).changes.rows.to_pylist()
            found += [row for row in rows if row[OP] != Op.TRUNCATE]
    await changes.aclose()
    return found


def brief(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(Op(row[OP]), row["id"], row["note"]) for row in found]


async def fails(changes: KafkaChanges, *words: str) -> tuple[DatasetError, list[Any]]:
    """Return the error of a message, and the rows before it."""
    found: list[Any] = []
    with pytest.raises(DatasetError) as caught:
        async with aclosing(changes.batches(None)) as batches:
            while True:
                rows = (await anext(batches)).changes.rows.to_pylist()
                found += [row["id"] for row in rows if row[OP] != Op.TRUNCATE]
    await changes.aclose()
    for each in words:
        assert each in caught.value.message, caught.value.message
    return caught.value, found


FORMS = ["json", "avro"]


def message(form: str, row: Any) -> Any:
    if row is None or form == "json":
        return row
    return avro(1, ROW, row) if "note" in row else avro(2, KEY, row)


def params(form: str, schemas: Registered) -> dict[str, str]:
    return {"kafka_message_format": form, "schema_registry_url": schemas.url}


@pytest.mark.parametrize("form", FORMS)
async def test_a_message_without_a_value_deletes_the_row_of_its_key(
    form: str, cluster: Cluster, schemas: Registered, topic: str
) -> None:
    sent = [
        ({"id": 1}, {"id": 1, "note": "a"}), ({"id": 2}, {"id": 2, "note": None}),
        ({"id": 1}, None), (None, None), ({"id": 1}, {"id": 1, "note": "b"}),
    ]  # fmt: skip
    cluster.send_keyed(topic, *((message(form, key), message(form, row)) for key, row in sent))
    found = await read(source(cluster, topic, params(form, schemas)), 4)
    assert brief(found) == [
        (Op.UPSERT, 1, "a"), (Op.UPSERT, 2, None), (Op.DELETE, 1, None), (Op.UPSERT, 1, "b"),
    ]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
async def test_without_a_primary_key_nothing_is_deleted(
    form: str, cluster: Cluster, schemas: Registered, topic: str
) -> None:
    rows = [message(form, {"id": number, "note": "a"}) for number in (1, 2)]
    cluster.send_keyed(topic, (b"no key", rows[0]), (b"no key", None), (b"no key", rows[1]))
    found = await read(source(cluster, topic, params(form, schemas), key=()), 2)
    assert brief(found) == [(Op.INSERT, 1, "a"), (Op.INSERT, 2, "a")]


async def test_columns_of_the_key_come_from_the_key(cluster: Cluster, topic: str) -> None:
    cluster.send_keyed(
        topic, ({"id": 1, "more": 2}, {"note": "a"}), (7, {"note": "b"}), (b"{", {"id": 8}),
        ({"id": 9}, {"id": 10, "note": "c"}),
    )  # fmt: skip
    found = await read(source(cluster, topic, {}), 4)
    assert [row[1:] for row in brief(found)] == [(1, "a"), (7, "b"), (8, None), (10, "c")]


async def test_columns_are_learned_with_those_of_the_key(cluster: Cluster, topic: str) -> None:
    cluster.send_keyed(topic, ({"id": 3}, None), ({"id": 1}, {"note": "a"}), ({"id": 1}, None))
    found = await read(source(cluster, topic, {}, ()), 3)
    assert brief(found) == [(Op.DELETE, 3, None), (Op.UPSERT, 1, "a"), (Op.DELETE, 1, None)]


async def test_keys_are_texts(cluster: Cluster, topic: str) -> None:
    cluster.send_keyed(topic, (b"12", {"note": "a"}), (b"12", None))
    found = await read(source(cluster, topic, {"kafka_key_format": "text"}), 2)
    assert brief(found) == [(Op.UPSERT, 12, "a"), (Op.DELETE, 12, None)]


@pytest.mark.parametrize(
    ("key", "form", "words"),
    [
        (b"{", "json", "its key: it is not JSON"),
        (b'{"other": 1}', "json", ""),
        (b"x", "text", "its key: it is no text, or none of its column"),
        (b"\xff", "text", "its key: it is no text, or none of its column"),
        (b"\x01", "avro", "is not in the wire format"),
    ],
)
async def test_a_key_that_cannot_be_read_stops_after_the_rows_before_it(
    key: bytes, form: str, words: str, cluster: Cluster, schemas: Registered, topic: str
) -> None:
    cluster.send_keyed(topic, (None, {"id": 1}), (key, {"note": "a"}))
    given = {"kafka_key_format": form, "schema_registry_url": schemas.url}
    _, found = await fails(source(cluster, topic, given), "partition 0, offset 1: ", words)
    assert found == [1]


async def test_schemas_may_change_between_messages(
    cluster: Cluster, schemas: Registered, topic: str
) -> None:
    wider = {**ROW, "fields": [
        *ROW["fields"], {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9,
                                   "scale": 2}},
    ]}  # fmt: skip
    schemas.avro(3, wider)
    narrow = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "int"}]}
    schemas.avro(4, narrow)
    moment = dt.datetime(2024, 2, 29, tzinfo=dt.UTC)
    price = Decimal("1.25")
    cluster.send(
        topic, avro(1, ROW, {"id": 1, "note": "a"}),
        avro(3, wider, {"id": 2, "note": "b", "at": moment, "price": price}),
        avro(4, narrow, {"id": 3}),
    )  # fmt: skip
    columns = (*COLUMNS, pa.field("at", pa.timestamp("us", "UTC")),
               pa.field("price", pa.decimal128(9, 2)))  # fmt: skip
    found = await read(source(cluster, topic, params("avro", schemas), columns), 3)
    assert brief(found) == [(Op.UPSERT, 1, "a"), (Op.UPSERT, 2, "b"), (Op.UPSERT, 3, None)]
    assert [row["at"] for row in found] == [None, moment, None]
    assert [row["price"] for row in found] == [None, price, None]
    # Undeclared fields are left out, and a dataset that learned its columns stops at new ones.
    again = await read(source(cluster, topic, params("avro", schemas)), 3)
    assert brief(again) == brief(found)


async def test_a_new_field_stops_a_dataset_that_learned_its_columns(
    cluster: Cluster, schemas: Registered, topic: str
) -> None:
    wider = {**ROW, "fields": [*ROW["fields"], {"name": "more", "type": "long"}]}
    schemas.avro(3, wider)
    cluster.send(topic, avro(1, ROW, {"id": 1, "note": "a"}))
    changes = source(cluster, topic, params("avro", schemas), ())
    async with aclosing(changes.batches(None)) as batches:
        assert brief((await anext(batches)).changes.rows.to_pylist()[-1:]) == [(Op.UPSERT, 1, "a")]
        cluster.send(topic, avro(3, wider, {"id": 2, "note": "b", "more": 3}))
        with pytest.raises(DatasetError, match="offset 1: column 'more' is not in the dataset"):
            await anext(batches)
    await changes.aclose()


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"", "is not in the wire format of the schema registry"),
        (b"\x01\0\0\0\x01\x02", "is not in the wire format"),
        (b"\0\0\0", "is not in the wire format"),
        (framed(9, b"\x02"), "the schema registry has no schema 9"),
        (framed(1, b""), "is not a record of the Avro schema: it is truncated"),
        (avro(1, ROW, {"id": 5, "note": "x"}) + b"\0", "is longer than a record"),
        (avro(1, ROW, {"id": 5, "note": "x"}) * 2, "is longer than a record"),
        (framed(5, b"\x02"), "the message is not a record"),
        (framed(6, b"\x02"), "schema 6 of the registry is PROTOBUF, not Avro"),
        (b'{"id": 5}', "is not in the wire format"),
    ],
)
async def test_a_poisoned_message_in_avro_stops_after_those_before_it(
    bad: bytes, words: str, cluster: Cluster, schemas: Registered, topic: str
) -> None:
    schemas.avro(5, "long")
    schemas.protobuf("/schemas/ids/6", descriptor_pb2.FileDescriptorProto())
    good = avro(1, ROW, {"id": 1, "note": "a"})
    cluster.send(topic, good, bad, good)
    error, found = await fails(
        source(cluster, topic, params("avro", schemas)),
        f"'{topic}', partition 0, offset 1: ", words,
    )  # fmt: skip
    assert (error.type, found) == ("schema", [1])


async def test_a_registry_that_is_away_loses_nothing(
    cluster: Cluster, schemas: Registered, topic: str
) -> None:
    cluster.send(topic, avro(7, ROW, {"id": 1, "note": "a"}))
    schemas.is_away(7)
    changes = source(cluster, topic, params("avro", schemas))
    error, found = await fails(changes, "the schema registry returned 503")
    assert (error.type, found) == ("unavailable", [])
    schemas.avro(7, ROW)
    found = await read(source(cluster, topic, params("avro", schemas)), 1)
    assert brief(found) == [(Op.UPSERT, 1, "a")]


def proto() -> tuple[descriptor_pb2.FileDescriptorProto, descriptor_pb2.FileDescriptorProto]:
    """Return a file with a message of all kinds, and a file that it imports."""
    other = descriptor_pb2.FileDescriptorProto(name="other.proto", package="o", syntax="proto3")
    place = other.message_type.add(name="Place")
    place.field.add(name="city", number=1, type=Kind.TYPE_STRING, label=Kind.LABEL_OPTIONAL)
    made = descriptor_pb2.FileDescriptorProto(name="row.proto", package="p", syntax="proto3")
    made.dependency.extend(
        ["other.proto", "google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"]
    )
    made.message_type.add(name="Unused")
    outer = made.message_type.add(name="Outer")
    row = outer.nested_type.add(name="Row")
    colour = row.enum_type.add(name="Colour")
    for number, name in enumerate(("RED", "BLUE")):
        colour.value.add(name=name, number=number)
    one, many = Kind.LABEL_OPTIONAL, Kind.LABEL_REPEATED
    for number, (name, type_, label, type_name) in enumerate((
        ("id", Kind.TYPE_INT64, one, ""), ("note", Kind.TYPE_STRING, one, ""),
        ("big", Kind.TYPE_UINT64, one, ""), ("colour", Kind.TYPE_ENUM, one, ".p.Outer.Row.Colour"),
        ("tags", Kind.TYPE_STRING, many, ""), ("raw", Kind.TYPE_BYTES, one, ""),
        ("at", Kind.TYPE_MESSAGE, one, ".google.protobuf.Timestamp"),
        ("maybe", Kind.TYPE_MESSAGE, one, ".google.protobuf.Int32Value"),
        ("place", Kind.TYPE_MESSAGE, one, ".o.Place"),
    ), start=1):  # fmt: skip
        row.field.add(name=name, number=number, type=type_, label=label,
                      type_name=type_name or None)  # fmt: skip
    return made, other


def proto_class() -> Any:
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    pool = DescriptorPool()
    made, other = proto()
    for each in (timestamp_pb2, wrappers_pb2):
        pool.AddSerializedFile(each.DESCRIPTOR.serialized_pb)
    for file in (other, made):
        pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("p.Outer.Row"))


ALL = (
    *COLUMNS, pa.field("big", pa.uint64()), pa.field("colour", pa.string()),
    pa.field("tags", pa.list_(pa.string())), pa.field("raw", pa.binary()),
    pa.field("at", pa.timestamp("us", "UTC")), pa.field("maybe", pa.int32()),
    pa.field("place", pa.struct([("city", pa.string())])),
)  # fmt: skip
PLACE = b"\x04\x02\x00"
"""The second message of the file, and the first one in it, in zigzag form."""


@pytest.fixture
def protos(schemas: Registered) -> Registered:
    made, other = proto()
    reference = {"name": "other.proto", "subject": "other value", "version": 3}
    schemas.protobuf("/schemas/ids/11", made, [reference])
    schemas.protobuf("/subjects/other%20value/versions/3", other)
    return schemas


async def test_messages_of_protobuf_are_rows(
    cluster: Cluster, protos: Registered, topic: str
) -> None:
    kind = proto_class()
    moment = dt.datetime(2024, 2, 29, 0, 0, 0, 123_456, tzinfo=dt.UTC)
    full = kind(id=1, note="a", big=2**64 - 1, colour=1, tags=["x", "y"], raw=b"\xff", at=moment,
                maybe={"value": 0}, place={"city": "Ulm"})  # fmt: skip
    rows = (framed(11, PLACE + each.SerializeToString()) for each in (full, kind(id=2)))
    cluster.send(topic, *rows)
    found = await read(source(cluster, topic, params("protobuf", protos), ALL), 2)
    names = [field.name for field in ALL]
    assert [[row[name] for name in names] for row in found] == [
        [1, "a", 2**64 - 1, "BLUE", ["x", "y"], b"\xff", moment, 0, {"city": "Ulm"}],
        [2, "", 0, "RED", [], b"", None, None, None],
    ]
    assert "format" in protos.server.asked[0].query


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"", "is not in the wire format"),
        (framed(11, b""), "names no type of its schema"),
        (framed(11, b"\x02\x09"), "names no type of schema 11|cannot be used"),
        (framed(11, b"\x02\x01"), "names no type of schema 11"),
        (framed(11, b"\xff\xff\xff\xff\xff\xff"), "names no type of its schema"),
        (framed(11, PLACE + b"\x0a\xff"), "is not a message of schema 11"),
        (framed(12, PLACE), "the schema registry has no schema 12"),
        (framed(1, PLACE), "schema 1 of the registry is AVRO, not Protobuf"),
        (framed(13, PLACE), "schema 13 of the registry cannot be used"),
    ],
)
async def test_a_poisoned_message_of_protobuf_stops_after_those_before_it(
    bad: bytes, words: str, cluster: Cluster, protos: Registered, topic: str
) -> None:
    protos.protobuf("/schemas/ids/13", proto()[0])
    good = framed(11, PLACE + proto_class()(id=1).SerializeToString())
    cluster.send(topic, good, bad, good)
    error, found = await fails(
        source(cluster, topic, params("protobuf", protos)), f"'{topic}', partition 0, offset 1: "
    )
    assert (error.type, found) == ("schema", [1])
    assert any(each in error.message for each in words.split("|")), error.message


async def test_keys_and_deletes_in_protobuf(
    cluster: Cluster, protos: Registered, topic: str
) -> None:
    key = framed(11, PLACE + proto_class()(id=4).SerializeToString())
    value = framed(11, PLACE + proto_class()(id=4, note="x").SerializeToString())
    cluster.send_keyed(topic, (key, value), (key, None))
    found = await read(source(cluster, topic, params("protobuf", protos)), 2)
    assert brief(found) == [(Op.UPSERT, 4, "x"), (Op.DELETE, 4, None)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kafka_message_format": "xml"}, "kafka_message_format is 'xml'"),
        ({"kafka_message_format": "avro"}, "Avro needs its schema"),
        ({"kafka_message_format": "protobuf"}, "need the registry of their schemas"),
        ({"kafka_key_format": "avro"}, "need the registry of their schemas"),
        ({"schema_registry_url": "ftp://x"}, "must be http://HOST"),
        ({"schema_registry_url": "http://user:secret@x"}, "must not contain credentials"),
    ],
)
def test_settings_that_cannot_work(given: dict[str, str], words: str, cluster: Cluster) -> None:
    with pytest.raises(DatasetError) as caught:
        source(cluster, "t", given)
    assert words in caught.value.message and "secret" not in caught.value.message
