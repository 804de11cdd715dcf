"""Checksums of chunks: of streams, of memory and of files, by the algorithms of two releases."""

import hashlib
import io
from pathlib import Path

import pyarrow as pa
import pytest
from blake3 import blake3

from caraway_plugins.stores import checksums
from caraway_plugins.stores.checksums import ChecksumWriter

CONTENT = bytes(range(256)) * 5000
BOTH = [hashlib.sha256(CONTENT).hexdigest(), blake3(CONTENT).hexdigest()]


@pytest.mark.parametrize("checksum", BOTH)
def test_bytes_match_their_checksum_wherever_they_are(tmp_path: Path, checksum: str) -> None:
    (tmp_path / "chunk").write_bytes(CONTENT)
    with (tmp_path / "chunk").open("rb") as file:
        file.seek(7)
        for content in (CONTENT, pa.py_buffer(CONTENT), file):
            assert checksums.match(content, checksum)
            assert not checksums.match(content, checksum[::-1])


def test_a_damaged_byte_does_not_match() -> None:
    damaged = bytearray(CONTENT)
    damaged[len(damaged) // 2] ^= 1
    assert not any(checksums.match(bytes(damaged), each) for each in BOTH)


def test_a_writer_computes_what_it_passes_on() -> None:
    target = io.BytesIO()
    writer = ChecksumWriter(target)
    for start in range(0, len(CONTENT), 1000):
        writer.write(memoryview(CONTENT)[start : start + 1000])
    assert target.getvalue() == CONTENT
    assert writer.checksum == checksums.of(CONTENT)
    assert writer.size_bytes == len(CONTENT)


@pytest.mark.parametrize("known", BOTH)
def test_bytes_that_were_stored_before_keep_their_checksum(known: str) -> None:
    writer = ChecksumWriter(io.BytesIO(), known)
    writer.write(CONTENT)
    assert writer.checksum == known
    writer.write(b"more")
    assert writer.checksum == checksums.of(CONTENT + b"more")
