"""Reads and writes the protobuf wire format, for messages without a Python definition."""

from collections.abc import Iterator
from dataclasses import dataclass

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message, from `start` to `end` with its tag; its content begins at `inside`.

    `number` is the value of a varint field, and 0 for other fields.
    """

    tag: int
    start: int
    inside: int
    end: int
    number: int
    is_bytes: bool

    def content(self, message: bytes) -> bytes:
        """Return the bytes of the field's content."""
        return message[self.inside : self.end]


def fields(message: bytes, start: int = 0, end: int | None = None) -> Iterator[Field]:
    """Yield the fields of the message between two positions.

    Raises:
        ValueError: it is not a message.
    """
    stop = len(message) if end is None else end
    at = start
    while at < stop:
        begin = at
        key, at = _varint(message, at, stop)
        kind, number = key & 7, 0
        inside = at
        if kind == _VARINT:
            number, at = _varint(message, at, stop)
        elif kind == _BYTES:
            length, inside = _varint(message, at, stop)
            at = inside + length
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"no protobuf field has the wire type {kind}")
        if at > stop:
            raise ValueError("a protobuf field is longer than its message")
        yield Field(key >> 3, begin, inside, at, number, kind == _BYTES)


def number(tag: int, value: int) -> bytes:
    """Encode a varint field."""
    return _written(tag << 3 | _VARINT) + _written(value)


def varints(content: bytes) -> Iterator[int]:
    """Yield the numbers of a packed field."""
    at = 0
    while at < len(content):
        value, at = _varint(content, at, len(content))
        yield value


def message(tag: int, content: bytes) -> bytes:
    """Encode a field that contains a message."""
    return _head(tag, len(content)) + content


def replaced(outer: bytes, inner: bytes, new: bytes) -> bytes:
    """Replace each message `inner` by `new`, and update the lengths of all messages around it.

    Raises:
        ValueError: `inner` is not a message inside `outer`.
    """
    places = list(_places(outer, inner))
    if not places:
        raise ValueError("the message is not inside the other")
    for place in reversed(places):
        outer = _replaced_at(outer, place, place + len(inner), new)
    return outer


def _places(outer: bytes, inner: bytes) -> Iterator[int]:
    at = outer.find(inner)
    while at >= 0:
        yield at
        at = outer.find(inner, at + len(inner))


def _replaced_at(outer: bytes, start: int, end: int, new: bytes) -> bytes:
    around = _around(outer, start, end)
    heads = []
    growth = len(new) - (end - start)
    for field in reversed(around):
        head = _head(field.tag, field.end - field.inside + growth)
        heads.append(head)
        growth += len(head) - (field.inside - field.start)
    parts, at = [], 0
    for field, head in zip(around, reversed(heads), strict=True):
        parts += [outer[at : field.start], head]
        at = field.inside
    return b"".join([*parts, outer[at:start], new, outer[end:]])


def _around(outer: bytes, start: int, end: int) -> list[Field]:
    """Return the messages that contain the range, outermost first, including itself."""
    found: list[Field] = []
    low, high = 0, len(outer)
    while (low, high) != (start, end):
        field = next((f for f in fields(outer, low, high) if f.inside <= start < f.end), None)
        if field is None or not field.is_bytes or field.end < end:
            raise ValueError("the message is not a field of the other")
        found.append(field)
        low, high = field.inside, field.end
    return found


def _head(tag: int, length: int) -> bytes:
    return _written(tag << 3 | _BYTES) + _written(length)


def _varint(message: bytes, at: int, stop: int) -> tuple[int, int]:
    value = shift = 0
    while at < stop:
        byte = message[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("a protobuf number has no end")


def _written(value: int) -> bytes:
    text = bytearray()
    while value > 127:
        text.append(value & 127 | 128)
        value >>= 7
    text.append(value)
    return bytes(text)
