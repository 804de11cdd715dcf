"""The metadata of messages of Arrow IPC streams: where a message says which buffers its rows have.

Arrow has no call for it. The metadata is a flatbuffer, whose tables are in Arrow's Message.fbs.
Functions raise `struct.error`, `IndexError` or `ValueError` for damaged metadata.
"""

import struct
from collections.abc import Iterator

# The fields of the tables, by position.
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
_NODES, _BUFFERS, _COMPRESSION = 1, 2, 3
_DATA_OF_DICTIONARY = 1
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_PAIR = struct.Struct("<qq")
"""A field node is its length and its count of NULLs, a buffer its place and its length."""
_LENGTH = struct.Struct("<q")

Metadata = bytes | bytearray


def rows_of(metadata: Metadata) -> int | None:
    """Return where the rows of a message are described; None for a message without rows."""
    root = _table(metadata, 0)
    kind = metadata[_field(metadata, root, _HEADER_TYPE) or 0]
    if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return None
    rows = _reference(metadata, root, _HEADER)
    return _reference(metadata, rows, _DATA_OF_DICTIONARY) if kind == _DICTIONARY_BATCH else rows


def body_bytes(metadata: Metadata) -> int:
    """Return how many bytes follow the metadata of a message."""
    place = _field(metadata, _table(metadata, 0), _BODY_LENGTH)
    return 0 if place is None else int(_LENGTH.unpack_from(metadata, place)[0])


def nodes(metadata: Metadata, rows: int) -> Iterator[tuple[int, int]]:
    """Yield the length and the count of NULLs of each array."""
    return _pairs(metadata, _vector(metadata, rows, _NODES))


def buffers(metadata: Metadata, rows: int) -> Iterator[tuple[int, int]]:
    """Yield where each buffer begins in the body, and its length."""
    return _pairs(metadata, _vector(metadata, rows, _BUFFERS))


def is_compressed(metadata: Metadata, rows: int) -> bool:
    """Return whether the buffers are compressed."""
    return _field(metadata, rows, _COMPRESSION) is not None


def align_buffers(metadata: bytearray, rows: int, alignment: int) -> None:
    """Change where buffers begin to the next multiples of `alignment`, and the body's length."""
    end = 0
    places = _vector(metadata, rows, _BUFFERS)
    for place in places:
        (_, length) = _PAIR.unpack_from(metadata, place)
        _PAIR.pack_into(metadata, place, end, length)
        end += length + -length % alignment
    body = _field(metadata, _table(metadata, 0), _BODY_LENGTH)
    if body is not None:
        _LENGTH.pack_into(metadata, body, end)


def _table(metadata: Metadata, place: int) -> int:
    """Return where the table is to which the offset at a place refers."""
    return place + int.from_bytes(metadata[place : place + 4], "little")


def _field(metadata: Metadata, table: int, position: int) -> int | None:
    """Return where a field of a table is; None if the table does not have it."""
    (back,) = struct.unpack_from("<i", metadata, table)
    known = table - back
    (size,) = struct.unpack_from("<H", metadata, known)
    if size < 6 + 2 * position:
        return None
    (offset,) = struct.unpack_from("<H", metadata, known + 4 + 2 * position)
    return table + offset if offset else None


def _reference(metadata: Metadata, table: int, position: int) -> int:
    place = _field(metadata, table, position)
    if place is None:
        raise ValueError("the metadata of a message lacks a field")
    return _table(metadata, place)


def _vector(metadata: Metadata, table: int, position: int) -> range:
    """Return where the pairs of a vector are."""
    if _field(metadata, table, position) is None:
        return range(0)
    vector = _reference(metadata, table, position)
    (count,) = struct.unpack_from("<I", metadata, vector)
    return range(vector + 4, vector + 4 + count * _PAIR.size, _PAIR.size)


def _pairs(metadata: Metadata, places: range) -> Iterator[tuple[int, int]]:
    return _PAIR.iter_unpack(memoryview(metadata)[places.start : places.stop])
