import io
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any, NoReturn

import fastavro
import orjson
import pyarrow as pa
import pytest

from caraway_plugins.changes import avro_schemas
from caraway_plugins.changes.target import BadChangesError, ChangeTarget
from tests.plugins.changes.events import ORDERS, Row, decode, event, postgres, told

TARGET = replace(
    ORDERS, schema=ORDERS.schema.append(pa.field("at", pa.timestamp("us"))), primary_key=("id",)
)
VALUE = {
    "type": "record", "name": "Value", "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal",
                                            "precision": 10, "scale": 2}]},
        {"name": "at", "type": ["null", {
            "type": "long", "connect.name": "io.debezium.time.Timestamp"}]}]}  # fmt: skip
SOURCE = {
    "type": "record", "name": "Source", "fields": [
        {"name": "connector", "type": "string"}, {"name": "name", "type": "string"},
        {"name": "lsn", "type": ["null", "long"]}]}  # fmt: skip
ENVELOPE: Row = {
    "type": "record", "name": "Envelope", "namespace": "shop.orders", "fields": [
        {"name": "before", "type": ["null", VALUE]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "source", "type": ["null", SOURCE]},
        {"name": "op", "type": "string"}]}  # fmt: skip
TEXT = orjson.dumps(ENVELOPE).decode()
EVENTS: list[Row] = [
    event("c", {"id": 1, "name": "a", "price": "1.50", "at": 1500}, source=postgres(1)),
    event("d", None, {"id": 2, "name": None, "price": None, "at": None}, source=None),
]
AVRO = "application/avro"


def written(each: Row) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(ENVELOPE), each, strict=False)
    return stream.getvalue()


@pytest.fixture
def events() -> list[Row]:
    made = [dict(each) for each in EVENTS]
    made[0]["after"] = dict(made[0]["after"], price=Decimal("1.50"))
    return made


def container(events: list[Row], codec: str = "null") -> bytes:
    stream = io.BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(ENVELOPE), events, codec=codec)
    return stream.getvalue()


class Kept:
    """A registry with one schema."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def files(self, number: int) -> NoReturn:
        raise AssertionError(number)

    def schema(self, number: int) -> Any:
        self.asked.append(number)
        if number != 258:
            raise BadChangesError(f"the schema registry has no schema {number}")
        return ENVELOPE


def framed(each: Row, number: int = 258) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + written(each)


def read(body: bytes, target: ChangeTarget = TARGET, header: str | None = None) -> Any:
    headers = {"x-avro-schema": header} if header else {}
    changes = decode(body, target, AVRO, headers)
    return changes.received, [(op, row) for op, row in told(changes)]


Form = Callable[[list[Row]], Any]


@pytest.mark.parametrize(
    "form",
    [
        lambda events: read(b"".join(map(written, events)), header=TEXT),
        lambda events: read(b"".join(map(written, events)), replace(TARGET, avro_schema=TEXT)),
        lambda events: read(b"".join(map(framed, events)), replace(TARGET, registry=Kept())),
        lambda events: read(container(events)),
    ],
)
def test_each_form_of_avro_gives_the_same_changes(form: Form, events: list[Row]) -> None:
    received, changes = form(events)

    assert received == 2
    assert [op for op, _ in changes] == ["UPSERT", "DELETE"]
    row = changes[0][1]
    assert (row["id"], str(row["price"]), row["at"].microsecond) == (1, "1.50", 500_000)


def test_schema_of_the_request_goes_before_the_registry_and_that_before_the_dataset(
    events: list[Row],
) -> None:
    kept = Kept()
    both = replace(TARGET, registry=kept, avro_schema='"string"')

    # A record without a before image begins with a zero byte, like a Confluent frame.
    assert read(written(events[0]), both, TEXT)[0] == 1
    assert not kept.asked
    assert read(framed(events[0]) * 3, both)[0] == 3
    assert kept.asked == [258]


@pytest.mark.parametrize(
    ("body", "target", "header", "says"),
    [
        (b"", TARGET, TEXT, "empty"),
        (b"\0\0", TARGET, None, "X-Avro-Schema"),
        (b"\0\x02", TARGET, TEXT, "event 1 is not a record"),
        (b"\0\x02", replace(TARGET, registry=Kept()), None, "event 1 is not in the wire format"),
        (b"\0\0\0\0\x07a", replace(TARGET, registry=Kept()), None, "no schema 7"),
        (b"\x01\0\0\0\x07a", replace(TARGET, registry=Kept()), None, "wire format"),
        (b"Obj\x01junk", TARGET, None, "cannot be opened"),
        (b"a", TARGET, "{", "schema is not JSON"),
        (b"a", TARGET, '{"type":"record"}', "schema cannot be used"),
        (b"a", TARGET, '"nonsense"', "schema cannot be used"),
        (b"\x02a", TARGET, '"string"', "event 1: it is not an object"),
        (b"\xff" * 40, TARGET, TEXT, "event 1 is not a record"),
    ],
)
def test_what_cannot_be_read_is_told(
    body: bytes, target: ChangeTarget, header: str | None, says: str
) -> None:
    with pytest.raises(BadChangesError, match=says):
        read(body, target, header)


def test_position_of_a_record_that_does_not_fit_counts_those_before_it(
    events: list[Row],
) -> None:
    kept = replace(TARGET, registry=Kept())
    wrong = [events[0], dict(events[1], op="x")]

    with pytest.raises(BadChangesError, match="event 2: its 'op'"):
        read(b"".join(map(framed, wrong)), kept)


def test_double_for_a_decimal_is_taken_as_it_is() -> None:
    text = TEXT.replace(
        '{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}', '"double"'
    )
    schema = fastavro.parse_schema(orjson.loads(text))

    def sent(price: float) -> bytes:
        stream = io.BytesIO()
        row = {"id": 1, "name": None, "price": price, "at": None}
        fastavro.schemaless_writer(stream, schema, event("c", row, source=None))
        return stream.getvalue()

    assert str(read(sent(2.5), header=text)[1][0][1]["price"]) == "2.50"
    with pytest.raises(BadChangesError, match="column 'price': the value does not fit"):
        read(sent(1.2345678901234567), header=text)


def test_compressed_container_is_refused_before_it_grows(events: list[Row]) -> None:
    with pytest.raises(BadChangesError, match="compressed"):
        read(container(events, "deflate"))


def nested(depth: int) -> Any:
    inner: Any = "null"
    for number in range(depth):
        fields = [{"name": f"f{n}", "type": inner if n == 0 else f"R{number - 1}"}
                  for n in range(10 if number else 1)]  # fmt: skip
        inner = {"type": "record", "name": f"R{number}", "fields": fields}
    return inner


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]},
         "'Node' contains itself"),
        ({"type": "array", "items": "null"}, "take no bytes"),
        ({"type": "array", "items": {"type": "record", "name": "Nil", "fields": []}},
         "take no bytes"),
        ({"type": "record", "name": "Nil", "fields": []}, "take no bytes"),
        (nested(12), "more than"),
        ({"type": "record", "name": "A", "fields": [], "__fastavro_parsed__": True},
         "not part of Avro"),
        ("null", "take no bytes"),
    ],
)  # fmt: skip
def test_schema_that_makes_much_of_few_bytes_is_refused(schema: Any, says: str) -> None:
    with pytest.raises(BadChangesError, match=says):
        avro_schemas.of_document(schema)
