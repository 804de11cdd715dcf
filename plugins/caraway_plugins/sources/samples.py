"""Reads the start of a text file, decompressed."""

import bz2
import codecs
import lzma
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import zstandard

from caraway_core.errors import DatasetError
from caraway_core.tables import Compression
from caraway_plugins.sources.storage import FoundFile, Storage

_CHUNK = 256 * 1024

_PIECE = 1024
"""The compressed bytes that are unpacked at once: a few may stand for many of the same."""
_SMALL_PIECE = 64
"""That of bz2, of which 45 bytes may stand for 46 MB."""


class Unpacker(Protocol):
    """Decompresses one member of an archive."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


_UNPACKERS: Mapping[Compression, Callable[[], Unpacker]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "bz2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
    "zstd": lambda: zstandard.ZstdDecompressor().decompressobj(),
}


class _Members:
    """Decompresses an archive of members that follow each other, as the engine does."""

    def __init__(self, compression: Compression) -> None:
        self._new = _UNPACKERS.get(compression)
        self._unpacker = self._new() if self._new is not None else None

    @property
    def is_over(self) -> bool:
        """True if the last member is whole."""
        return self._unpacker is None or self._unpacker.eof

    def piece(self, size: int) -> int:
        """Return how many of so many bytes are unpacked at once."""
        if self._unpacker is None:
            return size
        return _SMALL_PIECE if isinstance(self._unpacker, bz2.BZ2Decompressor) else _PIECE

    def unpack(self, data: bytes) -> bytes:
        if self._unpacker is None or self._new is None:
            return data
        found = b""
        while data:
            if self._unpacker.eof:
                # Some programs fill the rest of a block with zeros.
                data = data.lstrip(b"\0")
                if not data:
                    break
                self._unpacker = self._new()
            found += self._unpacker.decompress(data)
            data = self._unpacker.unused_data if self._unpacker.eof else b""
        return found


@dataclass(frozen=True, slots=True)
class FileSample:
    """The start of a file as text; `is_whole` means that it is the whole file."""

    text: str
    is_whole: bool
    has_mark: bool = False
    """True if a byte order mark is before the text."""


def head(
    storage: Storage, found: FoundFile, compression: Compression, limit_bytes: int
) -> FileSample:
    """Read about `limit_bytes` of decompressed text from the start of a file.

    Raises:
        DatasetError: the file does not have the expected compression, or is not UTF-8.
    """
    members, unpacked, position = _Members(compression), bytearray(), 0
    while position < found.size_bytes and len(unpacked) < limit_bytes:
        chunk = storage.read(found.path, position, min(position + _CHUNK, found.size_bytes))
        if not chunk:
            break
        size = members.piece(len(chunk))
        for start in range(0, len(chunk), size):
            piece = chunk[start : start + size]
            position += len(piece)
            try:
                unpacked += members.unpack(piece)
            except (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as exc:
                raise _damaged(storage.title(found.path), compression) from exc
            if len(unpacked) >= limit_bytes:
                break
    if 0 < position == found.size_bytes and len(unpacked) < limit_bytes and not members.is_over:
        raise _damaged(storage.title(found.path), compression)
    is_whole = position >= found.size_bytes and len(unpacked) <= limit_bytes
    return FileSample(
        _decoded(bytes(unpacked[:limit_bytes]), is_whole, storage.title(found.path)),
        is_whole,
        unpacked.startswith(codecs.BOM_UTF8),
    )


def _damaged(title: str, compression: Compression) -> DatasetError:
    return DatasetError("invalid", f"'{title}' is not {compression} data, or is damaged")


def _decoded(data: bytes, is_whole: bool, title: str) -> str:
    for cut in range(4):
        try:
            return data[: len(data) - cut].decode("utf-8-sig")
        except UnicodeDecodeError as exc:
            error = exc
            if is_whole or exc.start < len(data) - 4:
                break  # not just a character split by the end of the sample
    raise DatasetError("invalid", f"'{title}' is not UTF-8 text; convert it") from error
