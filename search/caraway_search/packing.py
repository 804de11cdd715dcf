"""The serialised form of segments: named arrays in one block of bytes with a checksum.

The block is a magic number, the length of a header, the header in JSON (kind, attributes, and the
type and place of each array), the arrays at multiples of 64 bytes, and a SHA-256 of all of that.
`unpack` copies no array, so a block may be a mapped file or an Arrow buffer.
"""

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caraway_search.errors import DamagedIndexError

MAGIC = b"CRWYSEG1"
_ALIGNMENT = 64
_LENGTH = struct.Struct("<Q")
_HEADER_START = len(MAGIC) + _LENGTH.size
_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class Packed:
    """The content of a block: attributes, which are values of JSON, and one-dimensional arrays."""

    attributes: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


def pack(kind: str, packed: Packed) -> bytes:
    """Serialise a segment of a kind."""
    places: list[tuple[str, str, int, int]] = []
    size = 0
    for name, array in packed.arrays.items():
        places.append((name, array.dtype.str, len(array), size))
        size += _aligned(array.nbytes)
    header = json.dumps({"kind": kind, "attributes": packed.attributes, "arrays": places}).encode()
    start = _aligned(_HEADER_START + len(header))
    block = np.zeros(start + size + _DIGEST_BYTES, np.uint8)
    block[:_HEADER_START] = np.frombuffer(MAGIC + _LENGTH.pack(len(header)), np.uint8)
    block[_HEADER_START : _HEADER_START + len(header)] = np.frombuffer(header, np.uint8)
    for (_, _, _, offset), array in zip(places, packed.arrays.values(), strict=True):
        contents = np.ascontiguousarray(array).view(np.uint8)
        block[start + offset : start + offset + len(contents)] = contents
    digest = hashlib.sha256(block[:-_DIGEST_BYTES].data).digest()
    block[-_DIGEST_BYTES:] = np.frombuffer(digest, np.uint8)
    return block.tobytes()


def unpack(kind: str, block: Any) -> Packed:
    """Open a block, which is anything with the buffer protocol. Its arrays are read-only.

    Raises:
        DamagedIndexError: the bytes are not those of `pack`, or of a segment of another kind.
    """
    view = memoryview(block).cast("B").toreadonly()
    if len(view) < _HEADER_START + _DIGEST_BYTES or bytes(view[: len(MAGIC)]) != MAGIC:
        raise DamagedIndexError(f"{len(view)} bytes are not a segment of a search index")
    if hashlib.sha256(view[:-_DIGEST_BYTES]).digest() != bytes(view[-_DIGEST_BYTES:]):
        raise DamagedIndexError(f"a segment of {len(view)} bytes has another checksum")
    # From here on the bytes are those that `pack` made.
    header_end = _HEADER_START + int(_LENGTH.unpack_from(view, len(MAGIC))[0])
    header = json.loads(bytes(view[_HEADER_START:header_end]))
    if header["kind"] != kind:
        raise DamagedIndexError(f"expected a segment of kind {kind!r}, found {header['kind']!r}")
    start = _aligned(header_end)
    return Packed(
        header["attributes"],
        {
            name: np.frombuffer(view, np.dtype(dtype), length, start + offset)
            for name, dtype, length, offset in header["arrays"]
        },
    )


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
