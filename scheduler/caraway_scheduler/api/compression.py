"""Compresses a body piece by piece."""

import zlib
from typing import Protocol

import zstandard

from caraway_scheduler.api.negotiation import Coding

_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_FAST = 1


class Compressor(Protocol):
    """What zlib and zstandard have in common."""

    def compress(self, data: bytes) -> bytes: ...

    def flush(self) -> bytes: ...


class _Identity:
    def compress(self, data: bytes) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


def make(coding: Coding) -> Compressor:
    """Return a fresh compressor; answers are made faster than slow levels could keep up with."""
    if coding == "gzip":
        return zlib.compressobj(_FAST, zlib.DEFLATED, _GZIP_WINDOW)
    if coding == "zstd":
        compressor: Compressor = zstandard.ZstdCompressor(level=_FAST).compressobj()
        return compressor
    return _Identity()
