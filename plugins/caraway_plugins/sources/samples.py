"""Reads the start of a text file, decompressed."""

import bz2
import codecs
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import zstandard

from caraway_core.errors import DatasetError
from caraway_core.tables import Compression
from caraway_plugins.sources.storage import FoundFile, Storage

_CHUNK = 256 * 1024

_UNPACKERS: dict[Compression, Callable[[], Callable[[bytes], bytes]]] = {
    "": lambda: lambda chunk: chunk,
    "gzip": lambda: zlib.decompressobj(wbits=31).decompress,
    "bz2": lambda: bz2.BZ2Decompressor().decompress,
    "xz": lambda: lzma.LZMADecompressor().decompress,
    "zstd": lambda: zstandard.ZstdDecompressor().decompressobj().decompress,
}


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
    unpack, unpacked, position = _UNPACKERS[compression](), bytearray(), 0
    while position < found.size_bytes and len(unpacked) < limit_bytes:
        end = min(position + _CHUNK, found.size_bytes)
        chunk = storage.read(found.path, position, end)
        if not chunk:
            break
        position += len(chunk)
        try:
            unpacked += unpack(chunk)
        except EOFError:  # the first member of the archive ended; the sample ends here
            break
        except (OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as exc:
            title = storage.title(found.path)
            raise DatasetError(
                "invalid", f"'{title}' is not {compression} data, or is damaged"
            ) from exc
    is_whole = position >= found.size_bytes and len(unpacked) <= limit_bytes
    return FileSample(
        _decoded(bytes(unpacked[:limit_bytes]), is_whole, storage.title(found.path)),
        is_whole,
        unpacked.startswith(codecs.BOM_UTF8),
    )


def _decoded(data: bytes, is_whole: bool, title: str) -> str:
    for cut in range(4):
        try:
            return data[: len(data) - cut].decode("utf-8-sig")
        except UnicodeDecodeError as exc:
            error = exc
            if is_whole or exc.start < len(data) - 4:
                break  # not just a character split by the end of the sample
    raise DatasetError("invalid", f"'{title}' is not UTF-8 text; convert it") from error
