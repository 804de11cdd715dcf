"""Finds rows by key: an index in memory of 12 bytes per row."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.partitions import hashing

Key = Any
"""The plain value of one column, or a tuple for several; equal keys compare equal."""


def hashes(columns: Sequence[pa.Array]) -> pa.Array:
    """Return the hash of each row's key.

    Raises:
        ValueError: values of this type cannot be keys.
    """
    return hashing.joined64(columns)


def keys(columns: Sequence[pa.Array]) -> list[Key]:
    """Return each row's key; keys compare equal if and only if their values are equal."""
    plain = [_plain(column) for column in columns]
    return plain[0] if len(plain) == 1 else list(zip(*plain, strict=True))


@dataclass(frozen=True, slots=True)
class Sought:
    """A key to look up, and its hash."""

    key: Key
    hash: int


def sought(values: Sequence[pa.Array]) -> Sought:
    """Return the key from arrays of one value each.

    Raises:
        ValueError: values of this type cannot be keys.
    """
    if len(values) == 1 and _is_simple(values[0].type):
        key = values[0][0].as_py()
        return Sought(key, hashing.hash64_of(key))
    return Sought(keys(values)[0], hashes(values)[0].as_py())


def _is_simple(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind))


def text(columns: Sequence[str], values: Sequence[pa.Scalar]) -> str:
    """Format a key for users: (a, b) = 1, 'x'."""
    return f"({', '.join(columns)}) = {', '.join(map(_worded, values))}"


class KeyIndex:
    """Row positions by the hash of their key. Compare hits with the key, as hashes may collide."""

    def __init__(self, hashes: pa.Array, positions: pa.Array) -> None:
        self._hashes = hashes
        self._positions = positions
        self._words = memoryview(hashes.buffers()[1] or b"").cast("Q")[: len(hashes)]

    @classmethod
    def over(cls, pieces: Iterable[Sequence[pa.Array]]) -> "KeyIndex":
        """Index the key columns of consecutive pieces of a table; rows with NULL are left out."""
        parts: list[pa.Array] = [pa.array([], pa.uint64())]
        held: list[pa.Array] = [pa.array([], pa.uint32())]
        start = 0
        for columns in pieces:
            count = len(columns[0])
            found = hashes(columns)
            positions = pa.arange(start, start + count).cast(pa.uint32())
            if any(column.null_count for column in columns):
                is_there = _all_valid(columns)
                found, positions = found.filter(is_there), positions.filter(is_there)
            parts.append(found)
            held.append(positions)
            start += count
        return cls._sorted(pa.concat_arrays(parts), pa.concat_arrays(held))

    @classmethod
    def _sorted(cls, hashes: pa.Array, positions: pa.Array) -> "KeyIndex":
        # The sort is stable, so rows with the same key stay in order.
        order = pc.array_sort_indices(hashes)
        return cls(hashes.take(order), positions.take(order))

    def __len__(self) -> int:
        return len(self._hashes)

    @property
    def nbytes(self) -> int:
        """The size of the index in bytes."""
        return int(self._hashes.nbytes + self._positions.nbytes)

    def first(self, hashes: pa.Array) -> list[int]:
        """Return for each hash the first position that has it, or -1."""
        if not len(self):
            return [-1] * len(hashes)
        at = pc.search_sorted(self._hashes, hashes)
        at = pc.min_element_wise(at, pa.scalar(len(self) - 1, pa.uint64()))
        is_same = pc.equal(self._hashes.take(at), hashes)
        found = self._positions.take(at).cast(pa.int64())
        # The keys of a TRUNCATE are NULL.
        found = pc.if_else(is_same, found, pa.scalar(-1, pa.int64())).fill_null(-1)
        return list(found.to_pylist())

    def at(self, hash_: int) -> list[int]:
        """Return all positions that have a hash, in order."""
        start = end = bisect_left(self._words, hash_)
        while end < len(self._words) and self._words[end] == hash_:
            end += 1
        return list(self._positions.slice(start, end - start).to_pylist())

    def repeated(self) -> list[list[int]]:
        """Return the positions of rows that share their hash with others, grouped by hash."""
        if len(self) < 2:
            return []
        is_next = pc.equal(self._hashes.slice(1), self._hashes.slice(0, len(self) - 1))
        groups: list[list[int]] = []
        last = -1
        for at in pc.indices_nonzero(is_next).to_pylist():
            if at != last:
                groups.append([self._positions[at].as_py()])
            groups[-1].append(self._positions[at + 1].as_py())
            last = at + 1
        return groups

    def without(self, positions: Sequence[int]) -> "KeyIndex":
        """Return an index without these rows."""
        gone = pa.array(positions, pa.uint32())
        stay = pc.invert(pc.is_in(self._positions, value_set=gone))
        return KeyIndex(self._hashes.filter(stay), self._positions.filter(stay))


def _all_valid(columns: Sequence[pa.Array]) -> pa.Array:
    valid = columns[0].is_valid()
    for column in columns[1:]:
        valid = pc.and_(valid, column.is_valid())
    return valid


def _plain(column: pa.Array) -> list[object]:
    types, kind = pa.types, column.type
    if types.is_dictionary(kind):
        return _plain(column.dictionary_decode())
    if types.is_floating(kind):
        # As in the hash: one NaN, and no negative zero.
        doubles = pc.add(column.cast(pa.float64()), pa.scalar(0.0))
        words = doubles.view(pa.int64())
        one = pa.scalar(0x7FF8 << 48, pa.int64())
        return list(pc.if_else(pc.is_nan(doubles), one, words).to_pylist())
    if types.is_temporal(kind):
        # Compare as numbers: Python has no nanoseconds, and other temporal values are slow to
        # create.
        return list(column.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist())
    return list(column.to_pylist())


def _worded(value: pa.Scalar) -> str:
    return str(value) if pa.types.is_primitive(value.type) else f"'{value}'"
