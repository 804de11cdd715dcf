"""Computes checksums of streams, without keeping a chunk in memory."""

import hashlib
import io
from typing import BinaryIO

import pyarrow as pa


class HashingWriter(io.RawIOBase):
    """Passes bytes on to a file, and computes their checksum."""

    def __init__(self, target: BinaryIO) -> None:
        super().__init__()
        self._target = target
        self._sum = hashlib.sha256()
        self.size_bytes = 0
        self.failure: OSError | None = None
        """The error of the file; Arrow's writer passes on only its text."""

    @property
    def checksum(self) -> str:
        return self._sum.hexdigest()

    def writable(self) -> bool:
        return True

    def write(self, block: bytes | memoryview, /) -> int:  # type: ignore[override]  # Arrow's blocks
        try:
            written = self._target.write(block)
        except OSError as exc:
            self.failure = exc
            raise
        self._sum.update(block)
        self.size_bytes += written
        return written


def digest(content: BinaryIO | pa.Buffer) -> str:
    """Return the checksum of all bytes; a file is read in blocks."""
    if isinstance(content, pa.Buffer):
        return hashlib.sha256(content).hexdigest()
    return hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type] # a real file
