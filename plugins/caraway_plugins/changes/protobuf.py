"""Reads messages of Protobuf in the wire format of the schema registry.

A message is a zero byte, the id of its schema, the place of its type in the schema, and its bytes.
The registry sends descriptors, so no text of definitions is parsed here.
"""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from google.protobuf import (
    any_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    json_format,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from caraway_plugins.changes.meanings import UNKNOWN, Meaning
from caraway_plugins.changes.target import BadChangesError, ProtobufFile, RegisteredSchemas

_KNOWN = (
    any_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2, timestamp_pb2, wrappers_pb2,
)  # fmt: skip
_HEAD_BYTES = 5
_MOST_PARTS = 16
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_OWN = "google.protobuf."


class ProtobufMessages:
    """Reads messages of one dataset."""

    def __init__(self, registry: RegisteredSchemas) -> None:
        """Take where schemas are."""
        self._registry = registry
        self._types: dict[tuple[int, tuple[int, ...]], Any] = {}

    def read(self, message: bytes) -> tuple[Mapping[str, object], Meaning]:
        """Return the fields of a message.

        Raises:
            BadChangesError: it is none of its schema, or its schema is unknown.
            RegistryAwayError: the schema registry does not respond.
        """
        if len(message) < _HEAD_BYTES or message[0]:
            raise BadChangesError(
                "event 1 is not in the wire format of the schema registry, which is a zero byte, "
                "4 bytes with the number of the schema, and the message"
            )
        number = int.from_bytes(message[1:_HEAD_BYTES], "big")
        place, begin = _place(message)
        key = (number, place)
        if key not in self._types:
            self._types[key] = _type(self._registry.files(number), number, place)
        try:
            found = self._types[key].FromString(message[begin:])
        except DecodeError as exc:
            raise BadChangesError(f"event 1 is not a message of schema {number}") from exc
        return dict(_fields(found)), UNKNOWN


def _place(message: bytes) -> tuple[tuple[int, ...], int]:
    """Return the indexes of the type of a message, and where its bytes begin."""
    count, at = _varint(message, _HEAD_BYTES)
    if count == 0:
        return (0,), at
    if not 0 < count <= _MOST_PARTS:
        raise BadChangesError("event 1 names no type of its schema")
    places = []
    for _ in range(count):
        place, at = _varint(message, at)
        places.append(place)
    return tuple(places), at


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return a number in zigzag form, and where it ends."""
    value = shift = 0
    for end in range(at, min(at + _HEAD_BYTES, len(message))):
        value |= (message[end] & 0x7F) << shift
        shift += 7
        if message[end] < 0x80:
            return (value >> 1) ^ -(value & 1), end + 1
    raise BadChangesError("event 1 names no type of its schema")


def _type(files: Sequence[ProtobufFile], number: int, place: tuple[int, ...]) -> object:
    """Return the class of a message.

    Raises:
        BadChangesError: the schema has no such type, or its files cannot be used.
    """
    pool = DescriptorPool()
    try:
        for each in _KNOWN:
            _add(pool, each.DESCRIPTOR.name, each.DESCRIPTOR.serialized_pb)
        for file in files:
            _add(pool, file.name, file.content)
        types: Any = pool.FindFileByName(files[-1].name)
        names = [each.name for each in _proto(files[-1].content).message_type]
        found = types.message_types_by_name[names[place[0]]] if place[0] >= 0 else None
        for each in place[1:]:
            found = found.nested_types[each] if found is not None and each >= 0 else None
    except (DecodeError, IndexError, KeyError, TypeError, ValueError) as exc:
        raise BadChangesError(f"schema {number} of the registry cannot be used") from exc
    if found is None:
        raise BadChangesError(f"event 1 names no type of schema {number}")
    return GetMessageClass(found)


def _proto(content: bytes) -> FileDescriptorProto:
    return FileDescriptorProto.FromString(content)


def _add(pool: DescriptorPool, name: str, content: bytes) -> None:
    file = _proto(content)
    file.name = name
    pool.AddSerializedFile(file.SerializeToString())


def _fields(message: Any) -> Iterator[tuple[str, object]]:
    """Yield the fields of a message; those that can be absent are NULL then."""
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.has_presence and not message.HasField(field.name):
            yield field.name, None
        elif not field.is_repeated:
            yield field.name, _value(field, value)
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            of = field.message_type.fields_by_name["value"]
            yield field.name, {str(key): _value(of, value[key]) for key in sorted(value)}
        else:
            yield field.name, [_value(field, each) for each in value]


def _value(field: Any, value: Any) -> object:
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return named.name if named is not None else str(value)
    if field.message_type is None:
        return value
    name: str = field.message_type.full_name
    if not name.startswith(_OWN):
        return dict(_fields(value))
    own = _WELL_KNOWN.get(name.removeprefix(_OWN))
    if own is not None:
        return own(value)
    if name.endswith("Value") and "value" in field.message_type.fields_by_name:
        return value.value
    return _json(value)


def _moment(value: Any) -> dt.datetime:
    if value.nanos % 1_000:
        raise BadChangesError("event 1 has a time with nanoseconds, which columns do not keep")
    try:
        return _EPOCH + dt.timedelta(seconds=value.seconds, microseconds=value.nanos // 1_000)
    except OverflowError as exc:
        raise BadChangesError("event 1 has a time that is out of range") from exc


def _json(value: Any) -> object:
    try:
        return json_format.MessageToDict(value)
    except (DecodeError, TypeError, ValueError) as exc:
        raise BadChangesError(f"event 1 has a {value.DESCRIPTOR.name} without a JSON form") from exc


_WELL_KNOWN: Mapping[str, Callable[[object], object]] = {"Timestamp": _moment, "Value": _json}
