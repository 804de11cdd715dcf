"""Deletion vectors: the positions of deleted rows of a data file, as a Roaring bitmap."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np

_MAGIC = bytes.fromhex("d1d33964")
_AROUND = 4
"""The bytes of the length before a vector, and of the checksum behind it."""
_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
_FEWEST_WITH_OFFSETS = 4
_MOST_IN_LIST = 4096
_BITS = 1 << 16


def positions(blob: bytes, count: int) -> np.ndarray:
    """Return the positions of the rows that a vector deletes, in their order; `count` of them.

    Raises:
        ValueError: the vector is cut or damaged, or has another number of rows.
    """
    vector = blob[_AROUND:-_AROUND]
    around = struct.pack(">I", len(vector)), struct.pack(">I", zlib.crc32(vector))
    if (blob[:_AROUND], blob[-_AROUND:]) != around or not vector.startswith(_MAGIC):
        raise ValueError("its length, its kind or its checksum is wrong")
    found = list(_Bitmap(vector[len(_MAGIC) :], count).parts())
    return np.concatenate(found) if found else np.empty(0, np.int64)


class _Bitmap:
    """Reads a bitmap of 64 bits: those of 32 bits, each with the upper half of its numbers."""

    def __init__(self, content: bytes, count: int) -> None:
        self._content, self._count = content, count
        self._at = 0

    def parts(self) -> Iterator[np.ndarray]:
        for _ in range(self._number("<Q")):
            upper = self._number("<I") << 32
            for part in self._lower_halves():
                yield part + upper
        if self._at != len(self._content) or self._count:
            raise ValueError("it has another number of rows, or ends late")

    def _lower_halves(self) -> Iterator[np.ndarray]:
        cookie = self._number("<I")
        has_runs = cookie & 0xFFFF == _WITH_RUNS
        if not has_runs and cookie != _WITHOUT_RUNS:
            raise ValueError("it is no bitmap")
        size = (cookie >> 16) + 1 if has_runs else self._number("<I")
        flags = np.zeros(size, np.uint8)
        if has_runs:
            flags = np.unpackbits(self._array("u1", (size + 7) // 8), bitorder="little")
        keys = self._array("<u2", 2 * size).reshape(size, 2)
        if not has_runs or size >= _FEWEST_WITH_OFFSETS:
            self._array("<u4", size)
        for is_run, key, last in zip(flags[:size].tolist(), *keys.T.tolist(), strict=True):
            yield self._container(bool(is_run), last + 1) + (key << 16)

    def _container(self, is_run: bool, count: int) -> np.ndarray:
        # Counts are compared before runs become numbers, which may be many more.
        self._count -= count
        if self._count < 0:
            raise ValueError("it has too many rows")
        if is_run:
            found = _in_runs(self._array("<u2", 2 * self._number("<H")), count)
        elif count <= _MOST_IN_LIST:
            return self._array("<u2", count).astype(np.int64)
        else:
            bits = self._array("u1", _BITS // 8)
            found = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
        if len(found) != count:
            raise ValueError("a part of it has another number of rows")
        return found

    def _number(self, form: str) -> int:
        (found,) = struct.unpack(form, self._taken(struct.calcsize(form)))
        return int(found)

    def _array(self, type_: str, count: int) -> np.ndarray:
        return np.frombuffer(self._taken(count * np.dtype(type_).itemsize), type_)

    def _taken(self, size: int) -> bytes:
        found = self._content[self._at : self._at + size]
        if len(found) != size:
            raise ValueError("it is cut")
        self._at += size
        return found


def _in_runs(runs: np.ndarray, count: int) -> np.ndarray:
    """Return the numbers of runs, each of which has its first number and how many follow it."""
    starts, more = runs.reshape(-1, 2).astype(np.int64).T
    lengths = more + 1
    if lengths.sum() != count:
        raise ValueError("its runs have another number of rows")
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(count)
