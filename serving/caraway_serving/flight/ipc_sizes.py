"""The size of an Arrow IPC stream once it is read, by its metadata alone.

The buffers of a message may be compressed: a few kilobytes become gigabytes. Each of them begins
with its length after decompression, which Arrow allocates before it decompresses. A column may
also have far more values than bytes, because values of the type null take none. So the metadata of
all messages is added up before any message is decoded.
"""

import struct
from collections.abc import Iterator

import pyarrow as pa

# The fields of the tables in Arrow's Message.fbs, by position.
_HEADER_TYPE, _HEADER = 1, 2
_NODES, _BUFFERS, _COMPRESSION = 1, 2, 3
_DATA_OF_DICTIONARY = 1
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_PAIR = struct.Struct("<qq")
"""A field node is its length and its count of NULLs, a buffer its place and its length."""
_LENGTH = struct.Struct("<q")


class StreamTooLargeError(ValueError):
    """A stream would take more memory than is allowed."""


def check(stream: bytes, most_bytes: int, most_values: int) -> int:
    """Return how many bytes the buffers of a stream become; nothing is decompressed.

    Raises:
        StreamTooLargeError: its buffers become larger than `most_bytes`, or it has more values.
        ValueError, OSError, pa.ArrowException: it is no IPC stream.
    """
    size = count = 0
    try:
        for message in _messages(pa.py_buffer(stream)):
            bytes_, values = _sizes(message)
            size, count = size + bytes_, count + values
    except (struct.error, IndexError) as exc:
        raise ValueError("the metadata of a message is damaged") from exc
    if size > most_bytes:
        raise StreamTooLargeError(f"it becomes {size} bytes, but at most {most_bytes} are allowed")
    if count > most_values:
        raise StreamTooLargeError(f"it has {count} values, but at most {most_values} are allowed")
    return size


def _sizes(message: pa.Message) -> tuple[int, int]:
    """Return the bytes and the values of a message of rows or of a dictionary."""
    metadata = message.metadata.to_pybytes()
    root = _table(metadata, 0)
    kind = metadata[_field(metadata, root, _HEADER_TYPE) or 0]
    if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return 0, 0
    batch = _reference(metadata, root, _HEADER)
    if kind == _DICTIONARY_BATCH:
        batch = _reference(metadata, batch, _DATA_OF_DICTIONARY)
    buffers = _pairs(metadata, batch, _BUFFERS)
    if _field(metadata, batch, _COMPRESSION) is None:
        size = sum(max(0, length) for _, length in buffers)
    else:
        size = sum(_decoded(message.body, start, length) for start, length in buffers)
    return size, sum(max(0, length) for length, _ in _pairs(metadata, batch, _NODES))


def _messages(source: pa.Buffer) -> Iterator[pa.Message]:
    reader = pa.ipc.MessageReader.open_stream(source)
    while True:
        try:
            yield reader.read_next_message()
        except StopIteration:
            return


def _decoded(body: pa.Buffer, start: int, length: int) -> int:
    if not length:
        return 0
    if start < 0 or length < _LENGTH.size or start + length > body.size:
        raise ValueError("a buffer is outside of its message")
    (said,) = _LENGTH.unpack_from(body, start)
    # -1: the buffer is not compressed after all.
    return length if said < 0 else int(said)


def _table(metadata: bytes, place: int) -> int:
    """Return where the table is to which the offset at a place refers."""
    return place + int.from_bytes(metadata[place : place + 4], "little")


def _field(metadata: bytes, table: int, position: int) -> int | None:
    """Return where a field of a table is; None if the table does not have it."""
    (back,) = struct.unpack_from("<i", metadata, table)
    known = table - back
    (size,) = struct.unpack_from("<H", metadata, known)
    if size < 6 + 2 * position:
        return None
    (offset,) = struct.unpack_from("<H", metadata, known + 4 + 2 * position)
    return table + offset if offset else None


def _reference(metadata: bytes, table: int, position: int) -> int:
    place = _field(metadata, table, position)
    if place is None:
        raise ValueError("the metadata of a message lacks a field")
    return _table(metadata, place)


def _pairs(metadata: bytes, table: int, position: int) -> Iterator[tuple[int, int]]:
    if _field(metadata, table, position) is None:
        return iter(())
    vector = _reference(metadata, table, position)
    (count,) = struct.unpack_from("<I", metadata, vector)
    end = vector + 4 + count * _PAIR.size
    return _PAIR.iter_unpack(memoryview(metadata)[vector + 4 : end])
