"""Messages of Protobuf: values of each kind, and bytes that are none of their schema."""

import datetime as dt
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from google.protobuf import any_pb2, descriptor_pb2, duration_pb2, struct_pb2, timestamp_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from caraway_plugins.changes.protobuf import ProtobufMessages
from caraway_plugins.changes.target import BadChangesError, ProtobufFile

Kind = descriptor_pb2.FieldDescriptorProto
_ONE, _MANY = Kind.LABEL_OPTIONAL, Kind.LABEL_REPEATED
_HEAD = b"\0\0\0\0\x07"
_TYPES = (
    ("at", Kind.TYPE_MESSAGE, _ONE, ".google.protobuf.Timestamp"),
    ("lasts", Kind.TYPE_MESSAGE, _ONE, ".google.protobuf.Duration"),
    ("any", Kind.TYPE_MESSAGE, _ONE, ".google.protobuf.Any"),
    ("json", Kind.TYPE_MESSAGE, _ONE, ".google.protobuf.Value"),
    ("maybe", Kind.TYPE_MESSAGE, _ONE, ".google.protobuf.StringValue"),
    ("colours", Kind.TYPE_ENUM, _MANY, ".p.Colour"),
    ("counts", Kind.TYPE_MESSAGE, _MANY, ".p.Row.CountsEntry"),
    ("self", Kind.TYPE_MESSAGE, _ONE, ".p.Row"),
)


def definitions() -> FileDescriptorProto:
    made = FileDescriptorProto(name="p.proto", package="p", syntax="proto3")
    made.dependency.extend(
        f"google/protobuf/{name}.proto"
        for name in ("timestamp", "duration", "any", "struct", "wrappers")
    )
    colour = made.enum_type.add(name="Colour")
    colour.value.add(name="RED", number=0)
    row = made.message_type.add(name="Row")
    entry = row.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=Kind.TYPE_INT32, label=_ONE)
    entry.field.add(name="value", number=2, type=Kind.TYPE_DOUBLE, label=_ONE)
    for number, (name, type_, label, type_name) in enumerate(_TYPES, 1):
        row.field.add(name=name, number=number, type=type_, label=label, type_name=type_name)
    return made


class Registry:
    """Has one schema, and counts how often it is read."""

    def __init__(self, *files: ProtobufFile) -> None:
        self._files = files or (ProtobufFile("p.proto", definitions().SerializeToString()),)
        self.reads = 0

    def schema(self, number: int) -> Any:
        raise AssertionError(number)

    def files(self, number: int) -> tuple[ProtobufFile, ...]:
        self.reads += 1
        assert number == 7
        return self._files


def read(content: bytes, place: bytes = b"\0") -> Mapping[str, object]:
    row, _ = ProtobufMessages(Registry()).read(_HEAD + place + content)
    return row


def field(number: int, content: bytes) -> bytes:
    """Return a field of bytes that are shorter than 128."""
    return bytes([number << 3 | 2, len(content)]) + content


def message(number: int, value: Any) -> bytes:
    return field(number, value.SerializeToString())


def test_fields_that_are_absent() -> None:
    assert read(b"") == {
        "at": None, "lasts": None, "any": None, "json": None, "maybe": None, "colours": [],
        "counts": {}, "self": None,
    }  # fmt: skip


@pytest.mark.parametrize("place", [b"\0", b"\x02\0"])
def test_values_of_each_kind(place: bytes) -> None:
    moment = timestamp_pb2.Timestamp(seconds=-1, nanos=999_999_000)
    content = (
        message(1, moment)
        + message(2, duration_pb2.Duration(seconds=1, nanos=500_000_000))
        + message(4, struct_pb2.Value(string_value="x"))
        + field(5, b"")
        + field(6, b"\0\x05")
        + field(7, b"\x08\x02\x11\0\0\0\0\0\0\xf0\x3f")
        + field(7, b"\x08\x01")
        + field(8, field(5, b"\x0a\x01a"))
    )
    found = read(content, place)
    assert found["at"] == dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)
    assert (found["lasts"], found["json"], found["maybe"]) == ("1.500s", "x", "")
    assert found["colours"] == ["RED", "5"]
    assert found["counts"] == {"1": 0.0, "2": 1.0}
    inner = found["self"]
    assert isinstance(inner, dict)
    assert inner["maybe"] == "a"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (message(1, timestamp_pb2.Timestamp(nanos=1)), "nanoseconds"),
        (message(1, timestamp_pb2.Timestamp(seconds=2**62)), "out of range"),
        (message(2, duration_pb2.Duration(seconds=2**62)), "Duration without a JSON form"),
        (message(3, any_pb2.Any(type_url="x/p.Unknown")), "Any without a JSON form"),
        (message(3, any_pb2.Any(type_url="x/google.protobuf.Duration", value=b"\xff")),
         "Any without a JSON form"),
        (message(4, struct_pb2.Value(number_value=float("nan"))), "Value without a JSON form"),
        (b"\xff", "not a message of schema 7"),
        (field(5, b"\x0a\x01\xff"), "not a message of schema 7"),
        (field(8, b"") [:1], "not a message of schema 7"),
    ],
)  # fmt: skip
def test_values_without_a_form(content: bytes, said: str) -> None:
    with pytest.raises(BadChangesError, match=said):
        read(content)


@pytest.mark.parametrize(
    "head",
    [b"", b"\0", b"\0\0\0\0", b"\x01\0\0\0\x07\0", _HEAD, _HEAD + b"\x01", _HEAD + b"\x22" * 3,
     _HEAD + b"\x02\x01", _HEAD + b"\x02\x04", _HEAD + b"\x04\0\x01", _HEAD + b"\x04\0\x06",
     _HEAD + b"\x80" * 9, _HEAD + b"\x04\0"],
)  # fmt: skip
def test_heads_that_name_no_type(head: bytes) -> None:
    with pytest.raises(BadChangesError):
        ProtobufMessages(Registry()).read(head)


@pytest.mark.parametrize(
    "files",
    [
        [ProtobufFile("p.proto", b"\xff")],
        [ProtobufFile("p.proto", b"")],
        [ProtobufFile("p.proto", FileDescriptorProto(dependency=["q"]).SerializeToString())],
        [ProtobufFile("google/protobuf/any.proto", definitions().SerializeToString())],
    ],
)
def test_schemas_that_cannot_be_used(files: list[ProtobufFile]) -> None:
    with pytest.raises(BadChangesError, match="schema 7 of the registry cannot be used"):
        ProtobufMessages(Registry(*files)).read(_HEAD + b"\0")


def test_a_schema_is_read_once() -> None:
    registry = Registry()
    messages = ProtobufMessages(registry)
    for _ in range(3):
        messages.read(_HEAD + b"\0")
    assert registry.reads == 1


def test_random_bytes_are_a_row_or_an_error_of_the_sender() -> None:
    chance = Random(1)
    whole = message(1, timestamp_pb2.Timestamp(seconds=9)) + field(7, b"\x08\x02") + field(5, b"")
    whole += message(3, any_pb2.Any(type_url="x/google.protobuf.Duration", value=b"\x08\x01"))
    refused = 0
    for _ in range(2_000):
        content = bytearray(whole)
        content[chance.randrange(len(content))] = chance.randrange(256)
        try:
            assert read(bytes(content)).keys() == {name for name, *_ in _TYPES}
        except BadChangesError:
            refused += 1
    assert 0 < refused < 2_000
