"""A block of bytes gives back its packed values, or one kind of error."""

import mmap
from pathlib import Path

import numpy as np
import pytest

from caraway_search.errors import DamagedIndexError
from caraway_search.packing import Packed, pack, unpack

PACKED = Packed(
    {"n": 1, "names": ["ä", "b"]},
    {"x": np.arange(5, dtype=np.int32), "none": np.zeros(0), "y": np.ones(3, np.uint8)},
)


def test_arrays_and_attributes_come_back(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(pack("kind", PACKED))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        found = unpack("kind", mapped)
        assert found.attributes == PACKED.attributes
        for name, array in PACKED.arrays.items():
            assert found.arrays[name].dtype == array.dtype
            assert found.arrays[name].tolist() == array.tolist()
            assert not found.arrays[name].flags.owndata
            assert not found.arrays[name].flags.writeable
        del found


def test_each_cut_and_each_changed_byte_is_noticed() -> None:
    block = pack("kind", PACKED)
    for length in range(len(block)):
        with pytest.raises(DamagedIndexError):
            unpack("kind", block[:length])
    for place in range(len(block)):
        changed = bytearray(block)
        changed[place] ^= 1 << place % 8
        with pytest.raises(DamagedIndexError):
            unpack("kind", changed)


def test_a_segment_of_another_kind_is_refused() -> None:
    with pytest.raises(DamagedIndexError, match="expected a segment of kind 'text', found 'kind'"):
        unpack("text", pack("kind", PACKED))
