"""Bounds of columns as Iceberg stores them, from the physical values that Parquet stores."""

import math
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa

_MOST_BYTES = 32
_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}
_int = struct.Struct("<i").pack
_long = struct.Struct("<q").pack
_float = struct.Struct("<f").pack
_double = struct.Struct("<d").pack
Pack = Callable[[Any, bool], bytes | None]
"""Packs a physical value as a lower bound, or with True as an upper one; None: there is none."""


def packer(own: pa.DataType, kind: str) -> Pack:
    """Return what packs the bounds of a column of a file, as those of its type in the table."""
    if kind in ("int", "date"):
        return lambda value, _is_upper: _int(value)
    if kind in ("long", "time"):
        return lambda value, _is_upper: _long(value)
    if kind.startswith("timestamp"):
        return _moments(own)
    if kind in ("float", "double"):
        return _floats(_float if kind == "float" else _double)
    if kind.startswith("decimal"):
        return lambda value, _is_upper: _decimal(value)
    return _OTHERS[kind.partition("[")[0]]


def ordered(own: pa.DataType) -> Callable[[Any], Any]:
    """Return what turns physical values of a column into values that compare as they should.

    It returns None for values that bound nothing.
    """
    if pa.types.is_decimal(own):
        return _unscaled
    if pa.types.is_floating(own):
        return lambda value: None if math.isnan(value) else value
    return lambda value: value


def _unscaled(value: int | bytes) -> int:
    return value if isinstance(value, int) else int.from_bytes(value, "big", signed=True)


def _moments(own: pa.DataType) -> Pack:
    if own.unit == "ns":
        # Readers cut off nanoseconds, so that an upper bound may be a microsecond too high.
        return lambda value, is_upper: _long(-(-value // 1000) if is_upper else value // 1000)
    factor = _PER_UNIT[own.unit]
    return lambda value, _is_upper: _long(value * factor)


def _floats(pack: Callable[[float], bytes]) -> Pack:
    def packed(value: float, is_upper: bool) -> bytes:
        if value == 0:  # A writer may have put either zero for both.
            return pack(0.0 if is_upper else -0.0)
        return pack(value)

    return packed


def _decimal(value: int) -> bytes:
    """Return the shortest two's complement of an unscaled value, most significant byte first."""
    length = (value if value >= 0 else ~value).bit_length() // 8 + 1
    return value.to_bytes(length, "big", signed=True)


def _text(value: bytes, is_upper: bool) -> bytes | None:
    """Shorten a text to whole characters, so that it bounds as before."""
    if len(value) <= _MOST_BYTES:
        return value if _is_text(value) else None
    start = value[:_MOST_BYTES].decode(errors="ignore")
    if not is_upper:
        return start.encode()
    while start:
        following = ord(start[-1]) + 1
        if 0xD800 <= following <= 0xDFFF:
            following = 0xE000
        start = start[:-1]
        if following <= 0x10FFFF:
            return (start + chr(following)).encode()
    return None


def _bytes(value: bytes, is_upper: bool) -> bytes | None:
    if len(value) <= _MOST_BYTES or not is_upper:
        return value[:_MOST_BYTES]
    start = value[:_MOST_BYTES].rstrip(b"\xff")
    return start[:-1] + bytes([start[-1] + 1]) if start else None


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


_OTHERS: dict[str, Pack] = {
    "boolean": lambda value, _is_upper: b"\x01" if value else b"\x00",
    "string": _text,
    "binary": _bytes,
    "fixed": lambda value, _is_upper: value,
}
