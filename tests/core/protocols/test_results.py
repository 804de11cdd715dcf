"""Chunks of results as stores describe them, also those of releases before."""

from dataclasses import asdict

import pytest

from caraway_core.protocols.results import ChunkInfo

CHUNK = ChunkInfo(3, 10, 2**40, "xxh3:ab", "day=1", "other", "e1")


def test_stored_fields_become_the_same_chunk() -> None:
    assert ChunkInfo.of_fields(asdict(CHUNK)) == CHUNK


def test_releases_before_named_the_checksum_after_its_algorithm() -> None:
    stored = {"index": 0, "row_count": 1, "size_bytes": 2, "sha256": "ab"}
    assert ChunkInfo.of_fields(stored) == ChunkInfo(0, 1, 2, "ab")


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"index": 0, "row_count": 1, "size_bytes": 2},
        {"index": 0, "row_count": 1, "size_bytes": 2, "checksum": "a", "colour": "red"},
    ],
)
def test_other_fields_are_not_those_of_a_chunk(stored: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        ChunkInfo.of_fields(stored)
