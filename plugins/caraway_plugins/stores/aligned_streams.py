"""Writes Arrow IPC streams whose buffers are aligned, without a copy of the rows.

Arrow's own writer aligns buffers to 8 bytes, and Python cannot change that. The engine copies
decimals and views that are not aligned to 16 bytes. So the writer's messages are taken apart on
their way to the file: buffers move to multiples of 64 bytes, and the metadata says where they are.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import BinaryIO

import pyarrow as pa

from caraway_core.tables import ipc_messages

ALIGNMENT = 64
_NOTHING = bytes(ALIGNMENT)
_MARK = b"\xff\xff\xff\xff"
_PREFIX_BYTES = 8
"""The mark of a message and the length of its metadata."""


def write(target: BinaryIO, schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> None:
    """Write the batches to the target, which must be where a multiple of 64 bytes begins.

    Raises:
        OSError: the target cannot be written.
        pa.ArrowInvalid: a batch does not have the schema.
    """
    with pa.PythonFile(_Messages(target), mode="w") as sink, pa.ipc.new_stream(sink, schema) as out:
        for batch in batches:
            out.write_batch(batch)


class _Messages:
    """Takes an IPC stream in pieces of any size, and writes each message when it is whole."""

    closed = False

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self._pieces: deque[memoryview] = deque()
        self._length = 0
        self._metadata = bytearray()
        self._expect(_PREFIX_BYTES, self._read_prefix)

    def write(self, block: bytes | pa.Buffer) -> int:
        piece = memoryview(block).cast("B")
        self._pieces.append(piece)
        self._length += len(piece)
        while self._length >= self._needed:
            self._go_on()
        return len(piece)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def _expect(self, length: int, go_on: Callable[[], None]) -> None:
        self._needed, self._go_on = length, go_on

    def _read_prefix(self) -> None:
        prefix = b"".join(self._next(_PREFIX_BYTES))
        size_bytes = int.from_bytes(prefix[len(_MARK) :], "little")
        if size_bytes:
            self._expect(size_bytes, self._read_metadata)
        else:
            self._target.write(prefix)  # The end of the stream.

    def _read_metadata(self) -> None:
        self._metadata = bytearray().join(self._next(self._needed))
        self._expect(ipc_messages.body_bytes(self._metadata), self._write_message)

    def _write_message(self) -> None:
        metadata, body_bytes = self._metadata, self._needed
        rows = ipc_messages.rows_of(metadata)
        buffers = [] if rows is None else list(ipc_messages.buffers(metadata, rows))
        if rows is not None:
            ipc_messages.align_buffers(metadata, rows, ALIGNMENT)
        metadata += bytes(-(_PREFIX_BYTES + len(metadata)) % ALIGNMENT)
        self._target.write(_MARK + len(metadata).to_bytes(4, "little") + metadata)
        done = 0
        for start, length in buffers:
            self._skip(start - done)
            for piece in self._next(length):
                self._target.write(piece)
            self._target.write(_NOTHING[: -length % ALIGNMENT])
            done = start + length
        self._skip(body_bytes - done)
        self._expect(_PREFIX_BYTES, self._read_prefix)

    def _next(self, length: int) -> list[memoryview]:
        """Take the next bytes, without a copy."""
        self._length -= length
        taken = []
        while length:
            piece = self._pieces.popleft()
            if len(piece) > length:
                self._pieces.appendleft(piece[length:])
                piece = piece[:length]
            taken.append(piece)
            length -= len(piece)
        return taken

    def _skip(self, length: int) -> None:
        self._next(length)
