"""The size of an Arrow IPC stream once it is read, by its metadata alone.

The buffers of a message may be compressed: a few kilobytes become gigabytes. Each of them begins
with its length after decompression, which Arrow allocates before it decompresses. A column may
also have far more values than bytes, because values of the type null take none. So the metadata of
all messages is added up before any message is decoded.
"""

import struct
from collections.abc import Iterator

import pyarrow as pa

from caraway_core.tables import ipc_messages

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
    rows = ipc_messages.rows_of(metadata)
    if rows is None:
        return 0, 0
    buffers = ipc_messages.buffers(metadata, rows)
    if ipc_messages.is_compressed(metadata, rows):
        size = sum(_decoded(message.body, start, length) for start, length in buffers)
    else:
        size = sum(max(0, length) for _, length in buffers)
    return size, sum(max(0, length) for length, _ in ipc_messages.nodes(metadata, rows))


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
