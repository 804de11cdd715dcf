"""The size of a stream after decompression is known before anything is decompressed."""

import pyarrow as pa
import pytest

from caraway_serving.flight import ipc_sizes
from caraway_serving.flight.ipc_sizes import StreamTooLargeError

MOST = 1 << 40


def stream(table: pa.Table, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


ZEROS = pa.table({"n": pa.array([0] * 100_000, pa.int64())})


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_a_stream_has_the_size_of_its_buffers(compression: str | None) -> None:
    content = stream(ZEROS, compression)
    assert 800_000 <= ipc_sizes.check(content, MOST, MOST) < 801_000
    assert compression is None or len(content) < 20_000


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_a_stream_that_becomes_too_large_is_refused(compression: str | None) -> None:
    content = stream(ZEROS, compression)
    size = ipc_sizes.check(content, MOST, MOST)
    assert ipc_sizes.check(content, size, MOST) == size
    with pytest.raises(StreamTooLargeError, match=f"it becomes {size} bytes, but at most"):
        ipc_sizes.check(content, size - 1, MOST)


def test_values_that_take_no_bytes_count() -> None:
    content = stream(pa.table({"a": pa.nulls(1_000_000)}))
    assert len(content) < 1_000
    assert ipc_sizes.check(content, MOST, 1_000_000) < 1_000
    with pytest.raises(StreamTooLargeError, match="it has 1000000 values, but at most 999999"):
        ipc_sizes.check(content, MOST, 999_999)


def test_dictionaries_and_nested_values_count() -> None:
    words = pa.array(["x" * 1000, "y"] * 5).dictionary_encode()
    assert ipc_sizes.check(stream(pa.table({"w": words})), MOST, MOST) > 1_000
    lists = pa.table({"l": pa.array([[1] * 100] * 100)})
    with pytest.raises(StreamTooLargeError, match="values"):
        ipc_sizes.check(stream(lists), MOST, 10_000)
    assert ipc_sizes.check(stream(lists), MOST, 10_100) > 80_000


@pytest.mark.parametrize("count", [0, 1])
def test_small_streams(count: int) -> None:
    table = pa.table({"a": pa.array([1] * count, pa.int32())})
    assert ipc_sizes.check(stream(table), 1_000, 1) < 100


def test_damaged_streams_raise_what_a_caller_expects() -> None:
    content = stream(ZEROS.slice(0, 100), "zstd")
    damaged = [content[:end] for end in range(0, len(content), 7)]
    for place in range(0, len(content), 3):
        damaged.append(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
    refused = 0
    for each in damaged:
        try:
            ipc_sizes.check(each, MOST, MOST)
        except (ValueError, OSError, pa.ArrowException):
            refused += 1
    assert 10 < refused < len(damaged)
