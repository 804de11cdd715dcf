"""Vectors have the positions that another library puts into them, or are refused."""

import random
import struct
import zlib
from collections.abc import Sequence

import numpy as np
import pytest

from caraway_plugins.iceberg import deletion_vectors
from tests.kit import iceberg_vectors

PART = 1 << 16


def read(blob: bytes, count: int) -> list[int]:
    found = deletion_vectors.positions(blob, count)
    assert found.dtype == np.int64
    return list(found.tolist())


def drawn(seed: int) -> Sequence[int]:
    """Return positions of all kinds of parts: a few, many, all, and long runs of them."""
    chosen = random.Random(seed)
    found: set[int] = set()
    for part in chosen.sample([0, 1, 2, 3, 9, PART, PART + 1, 3 * PART], chosen.randint(0, 8)):
        size = chosen.choice([1, 5, 4_096, 4_097, 30_000, PART])
        first = chosen.randrange(PART - size + 1)
        is_run = chosen.random() < 0.5
        own = range(first, first + size) if is_run else chosen.sample(range(PART), size)
        found.update(part * PART + each for each in own)
    return sorted(found)


@pytest.mark.parametrize("with_runs", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_positions_are_those_of_the_bitmap(seed: int, with_runs: bool) -> None:
    expected = drawn(seed)
    blob = iceberg_vectors.blob(expected, with_runs=with_runs)
    assert read(blob, len(expected)) == expected


def test_there_are_runs_with_offsets_and_without_them() -> None:
    for parts in (1, 3, 4, 12):
        expected = [part * PART + each for part in range(parts) for each in range(100)]
        blob = iceberg_vectors.blob(expected, with_runs=True)
        assert len(blob) < 50 + parts * 20
        assert read(blob, len(expected)) == expected


BLOB = iceberg_vectors.blob([1, 2, PART, 5 * PART + 7], with_runs=False)


@pytest.mark.parametrize("size", range(len(BLOB)))
def test_what_is_cut_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="its length, its kind or its checksum is wrong"):
        deletion_vectors.positions(BLOB[:size], 4)


@pytest.mark.parametrize("at", range(len(BLOB)))
def test_each_changed_byte_is_noticed(at: int) -> None:
    changed = BLOB[:at] + bytes([BLOB[at] ^ 1]) + BLOB[at + 1 :]
    with pytest.raises(ValueError, match="its length, its kind or its checksum is wrong"):
        deletion_vectors.positions(changed, 4)


@pytest.mark.parametrize(("count", "said"), [(3, "too many rows"), (5, "another number of rows")])
def test_another_number_of_rows_is_refused(count: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        deletion_vectors.positions(BLOB, count)


def sealed(bitmap: bytes) -> bytes:
    vector = bytes.fromhex("d1d33964") + bitmap
    return struct.pack(">I", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))


RUN = struct.pack("<QIIBHHH", 1, 0, 12347, 1, 0, 9, 1)
WRONG = {
    "it is cut": struct.pack("<QI", 1, 0),
    "it is no bitmap": struct.pack("<QII", 1, 0, 1),
    "its runs have another number of rows": RUN + struct.pack("<HH", 0, 5),
    "a part of it has another": struct.pack("<QIIIHHI", 1, 0, 12346, 1, 0, 4999, 0) + bytes(8192),
    "or ends late": struct.pack("<Q", 0) + b"x",
}


@pytest.mark.parametrize("said", WRONG)
def test_a_bitmap_that_no_writer_writes_is_refused(said: str) -> None:
    count = {"or ends late": 0, "its runs have another number of rows": 10}.get(said, 5_000)
    with pytest.raises(ValueError, match=said):
        deletion_vectors.positions(sealed(WRONG[said]), count)
