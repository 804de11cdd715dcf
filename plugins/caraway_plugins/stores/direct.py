"""Writes files past the page cache, where the file system supports it.

Data that is not read soon would only evict data that is. In addition, the kernel takes longer to
cache the pages of a file than the disk to write them.
"""

import errno
import fcntl
import io
import mmap
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

_BLOCK_BYTES = 4096
"""The block size of disks; offsets, lengths and memory must be multiples of it."""
_BUFFER_BYTES = 1024 * 1024
_buffers = threading.local()


@contextmanager
def past_cache(target: BinaryIO) -> Iterator[BinaryIO]:
    """Yield a file that writes to the start of the target with direct I/O.

    The target is complete when the block ends. Only its last partial block is cached.
    """
    with _DirectWriter(target.fileno()) as writer:
        yield writer  # type: ignore[misc]  # it is a raw stream
    target.seek(0, os.SEEK_END)


class _DirectWriter(io.RawIOBase):
    """Collects bytes in aligned memory, and writes whole blocks."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._buffer = _buffer()
        self._length = 0
        self._flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        self._is_direct = False
        with suppress(OSError):  # Not every file system supports it.
            fcntl.fcntl(descriptor, fcntl.F_SETFL, self._flags | os.O_DIRECT)
            self._is_direct = True

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self._flush_all()
        finally:
            self._go_cached()
            self.close()

    def writable(self) -> bool:
        return True

    def write(self, block: bytes | memoryview, /) -> int:  # type: ignore[override]  # Arrow's blocks
        with memoryview(block).cast("B") as left:
            for start in range(0, len(left), _BUFFER_BYTES):
                self._take(left[start : start + _BUFFER_BYTES])
            return len(left)

    def _take(self, piece: memoryview) -> None:
        fitting = min(len(piece), _BUFFER_BYTES - self._length)
        self._buffer[self._length : self._length + fitting] = piece[:fitting]
        self._length += fitting
        if self._length == _BUFFER_BYTES:
            self._write_out(_BUFFER_BYTES)
            self._take(piece[fitting:])

    def _flush_all(self) -> None:
        whole = self._length - self._length % _BLOCK_BYTES
        self._write_out(whole)
        self._go_cached()
        self._write_out(self._length)

    def _write_out(self, length: int) -> None:
        """Write the first `length` bytes of the buffer, and keep the rest."""
        done = 0
        with memoryview(self._buffer) as content:
            while done < length:
                try:
                    done += os.write(self._descriptor, content[done:length])
                except OSError as exc:
                    if exc.errno != errno.EINVAL or not self._is_direct:
                        raise
                    self._go_cached()
                if done % _BLOCK_BYTES:
                    # The disk became full in the middle of a block; the next write reports it.
                    self._go_cached()
            left = self._length - done
            content[:left] = content[done : self._length]
        self._length = left

    def _go_cached(self) -> None:
        if self._is_direct:
            self._is_direct = False
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, self._flags)


def _buffer() -> mmap.mmap:
    """Return the buffer of this thread, which serves one file at a time."""
    found: mmap.mmap | None = getattr(_buffers, "buffer", None)
    if found is None:
        found = _buffers.buffer = mmap.mmap(-1, _BUFFER_BYTES)
    return found
