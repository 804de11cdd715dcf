"""Compresses and decompresses bodies in pieces."""

import zlib
from collections.abc import Iterator
from typing import Protocol

import zstandard

from caraway_serving.codings import Coding

_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_FAST = 1


class Compressor(Protocol):
    """The compressor interface that zlib and zstandard share."""

    def compress(self, data: bytes) -> bytes: ...

    def flush(self) -> bytes: ...


class _Identity:
    def compress(self, data: bytes) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


def make(coding: Coding) -> Compressor:
    """Return a new compressor, with a fast level, because responses are produced quickly."""
    if coding == "gzip":
        return zlib.compressobj(_FAST, zlib.DEFLATED, _GZIP_WINDOW)
    if coding == "zstd":
        compressor: Compressor = zstandard.ZstdCompressor(level=_FAST).compressobj()
        return compressor
    return _Identity()


DECODED = ("gzip", "deflate", "zstd", "identity")
"""Supported content encodings of request bodies."""
_STEP_BYTES = 1024 * 1024
_SLICE_BYTES = 256
_MOST_FRAMES = 1_000
_LARGEST_WINDOW = 8 * 1024 * 1024


class DamagedBodyError(Exception):
    """A body does not match its content encoding."""


def decompressed(body: bytes, encoding: str) -> Iterator[bytes]:
    """Yield a decompressed body in parts of at most a megabyte.

    Raises:
        DamagedBodyError: the body does not have this encoding, or ends too early.
    """
    return _unzstd(body) if encoding == "zstd" else _inflated(body, encoding)


def _inflated(body: bytes, encoding: str) -> Iterator[bytes]:
    # Many clients send `deflate` without the zlib header that the standard requires.
    is_bare = encoding == "deflate" and (len(body) < 2 or int.from_bytes(body[:2]) % 31)
    window = _GZIP_WINDOW if encoding == "gzip" else -zlib.MAX_WBITS if is_bare else zlib.MAX_WBITS
    rest = body
    for _ in range(_MOST_FRAMES):
        if not rest:
            return
        reader = zlib.decompressobj(window)
        try:
            while not reader.eof:
                part = reader.decompress(rest, _STEP_BYTES)
                rest = reader.unconsumed_tail
                if part:
                    yield part
                elif not rest and not reader.eof:
                    raise DamagedBodyError("it ends too early")
        except zlib.error as exc:
            raise DamagedBodyError(str(exc)) from exc
        # Concatenated gzip files are one gzip file.
        rest = reader.unused_data if encoding == "gzip" else b""
    raise DamagedBodyError("it has too many parts")


def _unzstd(body: bytes) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
    rest = memoryview(body)
    for _ in range(_MOST_FRAMES):
        if not rest:
            return
        reader = decompressor.decompressobj()
        try:
            # One slice may decompress to 32,000 times its size.
            while not reader.eof:
                if not rest:
                    raise DamagedBodyError("it ends too early")
                part = reader.decompress(rest[:_SLICE_BYTES])
                rest = rest[_SLICE_BYTES:]
                if part:
                    yield part
        except zstandard.ZstdError as exc:
            raise DamagedBodyError(str(exc)) from exc
        rest = memoryview(reader.unused_data + bytes(rest)) if reader.unused_data else rest
    raise DamagedBodyError("it has too many parts")
