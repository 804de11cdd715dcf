"""Computes checksums of chunks from streams, without keeping a chunk in memory."""

import hashlib
import io
from collections.abc import Callable, Sequence
from typing import BinaryIO, Protocol

import pyarrow as pa
from blake3 import blake3

_BLOCK_BYTES = 256 * 1024


class _Sum(Protocol):
    """The checksum of the bytes so far, by one algorithm."""

    def update(self, block: bytes | memoryview, /) -> object: ...
    def hexdigest(self) -> str: ...


_ALGORITHMS: Sequence[Callable[[], _Sum]] = (blake3, hashlib.sha256)
"""Of new chunks, and of those that another release stored. Both have 64 digits."""


class ChecksumWriter(io.RawIOBase):
    """Passes bytes on to a file, and computes their checksum."""

    def __init__(self, target: BinaryIO, known: str = "") -> None:
        """Write to a file; `known` is the checksum of these bytes if they were stored before."""
        super().__init__()
        self._target = target
        self._known = known
        self._sums = [each() for each in (_ALGORITHMS if known else _ALGORITHMS[:1])]
        self.size_bytes = 0

    @property
    def checksum(self) -> str:
        """The known checksum, if the bytes have it, or that of a new chunk."""
        found = [each.hexdigest() for each in self._sums]
        return self._known if self._known in found else found[0]

    def writable(self) -> bool:
        return True

    def write(self, block: bytes | memoryview, /) -> int:  # type: ignore[override]  # Arrow's blocks
        written = self._target.write(block)
        for each in self._sums:
            each.update(block)
        self.size_bytes += written
        return written


def of(content: BinaryIO | pa.Buffer | bytes) -> str:
    """Return the checksum of all bytes for a new chunk; a file is read in blocks."""
    return _computed(_ALGORITHMS[0], content)


def match(content: BinaryIO | pa.Buffer | bytes, checksum: str) -> bool:
    """Return whether all bytes have the checksum; a file is read in blocks from its start."""
    return any(_computed(each, content) == checksum for each in _ALGORITHMS)


def _computed(algorithm: Callable[[], _Sum], content: BinaryIO | pa.Buffer | bytes) -> str:
    made = algorithm()
    if isinstance(content, (bytes, pa.Buffer)):
        made.update(memoryview(content))
        return made.hexdigest()
    content.seek(0)
    block = memoryview(bytearray(_BLOCK_BYTES))
    while length := content.readinto(block):  # type: ignore[union-attr]  # of every real file
        made.update(block[:length])
    return made.hexdigest()
