"""Values and files of Avro as bytes, for records of one known shape.

fastavro takes six times as long for manifests, because it looks up each field of each small record.
"""

import json
import secrets
import zlib
from collections.abc import Iterable, Mapping, Sequence

NULL = b"\x00"
SOME = b"\x02"
"""What comes before the value of a union with null, which has one."""
END = b"\x00"
_MAGIC = b"Obj\x01"
_PER_BLOCK = 1000
_SYNC_BYTES = 16


def _long(number: int) -> bytes:
    left = number << 1 if number >= 0 else (-number << 1) - 1
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


_SMALL = [_long(number) for number in range(4096)]


def long(number: int) -> bytes:
    """Return an int or a long."""
    return _SMALL[number] if 0 <= number < 4096 else _long(number)


def text(value: str) -> bytes:
    """Return a string."""
    return binary(value.encode())


def binary(value: bytes) -> bytes:
    """Return bytes."""
    return long(len(value)) + value


def longs_by_id(found: Mapping[int, int]) -> bytes:
    """Return an optional map of ids to longs, as an array of pairs."""
    if not found:
        return NULL
    parts = [SOME, long(len(found))]
    for key, value in found.items():
        parts.append(long(key))
        parts.append(long(value))
    parts.append(END)
    return b"".join(parts)


def bytes_by_id(found: Mapping[int, bytes]) -> bytes:
    """Return an optional map of ids to bytes, as an array of pairs."""
    if not found:
        return NULL
    parts = [SOME, long(len(found))]
    for key, value in found.items():
        parts += (long(key), long(len(value)), value)
    parts.append(END)
    return b"".join(parts)


def longs(found: Sequence[int]) -> bytes:
    """Return an optional array of longs."""
    if not found:
        return NULL
    return b"".join((SOME, long(len(found)), *map(long, found), END))


def container(schema: object, metadata: Mapping[str, str], records: Iterable[bytes]) -> bytes:
    """Return a file of records, compressed by deflate."""
    head = {**metadata, "avro.schema": json.dumps(schema), "avro.codec": "deflate"}
    sync = secrets.token_bytes(_SYNC_BYTES)
    parts = [_MAGIC, long(len(head))]
    parts += [text(key) + text(value) for key, value in head.items()]
    parts += [END, sync]
    left = list(records)
    for start in range(0, len(left), _PER_BLOCK):
        block = left[start : start + _PER_BLOCK]
        packed = _deflated(b"".join(block))
        parts += [long(len(block)), long(len(packed)), packed, sync]
    return b"".join(parts)


def _deflated(content: bytes) -> bytes:
    packing = zlib.compressobj(1, wbits=-15)
    return packing.compress(content) + packing.flush()
