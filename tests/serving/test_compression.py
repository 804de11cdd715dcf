"""Bodies in parts: unpacking returns the packed bytes, and distinguishes damage from an end."""

import gzip
import random
import zlib

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_serving import compression
from caraway_serving.codings import Coding
from caraway_serving.compression import DamagedBodyError, decompressed

NOISE = random.Random(7).randbytes(300_000)


def zipped(text: bytes) -> bytes:
    """Return the same bytes at any time of day: parallel tests must have the same names."""
    return gzip.compress(text, mtime=0)


def packed(coding: Coding, *parts: bytes) -> bytes:
    compressor = compression.make(coding)
    return b"".join([*(compressor.compress(part) for part in parts), compressor.flush()])


def unpacked(body: bytes, encoding: str) -> bytes:
    return b"".join(decompressed(body, encoding))


def bare(text: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(text) + packer.flush()


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
@settings(max_examples=25, derandomize=True)
@given(
    parts=st.lists(st.binary(max_size=400) | st.sampled_from([NOISE, b"a" * 70_000]), max_size=6)
)
def test_what_is_compressed_in_parts_is_read_back(coding: Coding, parts: list[bytes]) -> None:
    assert unpacked(packed(coding, *parts), coding) == b"".join(parts)


def test_identity_leaves_bytes_as_they_are() -> None:
    assert packed("identity", b"a", b"", NOISE) == b"a" + NOISE


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_two_compressors_share_nothing(coding: Coding) -> None:
    first, second = compression.make(coding), compression.make(coding)
    one = first.compress(b"one")
    two = second.compress(b"two")
    assert unpacked(one + first.flush(), coding) == b"one"
    assert unpacked(two + second.flush(), coding) == b"two"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_nothing_is_nothing(encoding: str) -> None:
    assert unpacked(b"", encoding) == b""


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (zipped(b"a") + zipped(b"") + zipped(b"b"), "gzip"),
        (zstandard.compress(b"a") + zstandard.compress(b"") + zstandard.compress(b"b"), "zstd"),
        (zlib.compress(b"ab"), "deflate"),
        (bare(b"ab"), "deflate"),
    ],
)
def test_frames_in_a_row_are_one_body(body: bytes, encoding: str) -> None:
    assert unpacked(body, encoding) == b"ab"


@pytest.mark.parametrize(
    ("pack", "encoding"),
    [(gzip.compress, "gzip"), (zlib.compress, "deflate"), (zstandard.compress, "zstd")],
)
@pytest.mark.parametrize("text", [b"SELECT 1", b"x" * 5_000, NOISE[:5_000]])
def test_every_cut_is_damage(pack: "type[bytes]", encoding: str, text: bytes) -> None:
    whole = pack(text)
    for end in {1, 2, 5, 9, len(whole) // 2, len(whole) - 4, len(whole) - 1}:
        with pytest.raises(DamagedBodyError):
            unpacked(whole[:end], encoding)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
@settings(max_examples=150, derandomize=True)
@given(body=st.binary(min_size=1, max_size=60))
def test_bytes_of_anything_are_read_or_damage(encoding: str, body: bytes) -> None:
    try:
        unpacked(body, encoding)
    except DamagedBodyError as exc:
        assert str(exc)


@pytest.mark.parametrize(
    ("pack", "encoding"), [(gzip.compress, "gzip"), (zstandard.compress, "zstd")]
)
def test_garbage_behind_a_body_is_damage(pack: "type[bytes]", encoding: str) -> None:
    with pytest.raises(DamagedBodyError):
        unpacked(pack(b"SELECT 1") + b"garbage!", encoding)


@pytest.mark.parametrize(
    ("pack", "encoding"),
    [(gzip.compress, "gzip"), (zlib.compress, "deflate"), (zstandard.compress, "zstd")],
)
def test_large_body_comes_in_parts_that_a_reader_can_refuse(
    pack: "type[bytes]", encoding: str
) -> None:
    bomb = pack(bytes(30_000_000))
    reading = decompressed(bomb, encoding)
    first = next(reading)
    assert 0 < len(first) < 9 * 1024 * 1024
    rest = sum(len(part) for part in reading)
    assert len(first) + rest == 30_000_000


def test_zstd_of_a_huge_window_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    body = packer.compress(b"x" * 10_000) + packer.flush()
    with pytest.raises(DamagedBodyError):
        unpacked(body, "zstd")


@pytest.mark.parametrize(
    ("frame", "encoding"),
    [(zipped(b""), "gzip"), (zstandard.compress(b""), "zstd")],
)
def test_a_body_of_empty_frames_ends(frame: bytes, encoding: str) -> None:
    assert unpacked(frame * 999, encoding) == b""
    with pytest.raises(DamagedBodyError, match="too many"):
        unpacked(frame * 1_001, encoding)
