import hashlib
import io
from decimal import Decimal

import pyarrow as pa
import pytest

from caraway_core.protocols.results import ChunkInfo
from caraway_plugins.stores import checksums, chunks

_ALIGNMENT = 64
ROWS = pa.table({
    # Odd lengths, so that the next buffer is misaligned unless the writer aligns it.
    "s": ["a", None, "a text of more than twelve"],
    "view": pa.array(["another text of more than twelve", None, "b"], pa.string_view()),
    "d": pa.array([Decimal("1.23"), None, Decimal("-9.99")], pa.decimal128(15, 2)),
    "i": pa.array([1, None, 3], pa.int32()),
    "wide": pa.array([Decimal("1.23"), None, Decimal("-9.99")], pa.decimal256(50, 2)),
    "list": pa.array([["x"], None, []], pa.list_(pa.string_view())),
})  # fmt: skip
SCHEMA = ROWS.schema.with_metadata({"made": "here"})


def batches(count: int = 3) -> list[pa.RecordBatch]:
    return [ROWS.cast(SCHEMA).to_batches()[0]] * count


def written(rows: list[pa.RecordBatch]) -> tuple[ChunkInfo, pa.Buffer]:
    target = io.BytesIO()
    info = chunks.write(target, 0, SCHEMA, rows)
    content = chunks.allocated(info.size_bytes)
    memoryview(content).cast("B")[:] = target.getbuffer()
    return info, content


def buffers(array: pa.Array) -> list[pa.Buffer]:
    return [each for each in array.buffers() if each is not None and each.size]


def test_every_buffer_begins_where_the_engine_reads_it_in_place() -> None:
    info, content = written(batches())

    found = chunks.unpack(content, "k", info)

    assert content.address % _ALIGNMENT == 0
    places = [
        buffer.address for each in found for column in each.columns for buffer in buffers(column)
    ]
    assert len(places) > 3 * len(SCHEMA)
    assert all(place % _ALIGNMENT == 0 for place in places)
    assert all(content.address <= place < content.address + content.size for place in places)


def test_rows_and_what_the_schema_says_come_back() -> None:
    info, content = written(batches())

    found = chunks.unpack(content, "k", info)

    assert info.row_count == 9
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches(batches()))
    assert found[0].schema.equals(SCHEMA, check_metadata=True)


def test_what_is_read_is_written_again_with_the_same_checksum() -> None:
    info, content = written([each.slice(1, 2) for each in batches()])

    again, _ = written(list(chunks.unpack(content, "k", info)))

    assert again == info


def test_what_the_release_before_wrote_is_written_again_as_it_was() -> None:
    before = chunks._as_before(SCHEMA, batches())
    checksum = hashlib.sha256(before).hexdigest()
    target = io.BytesIO()

    info = chunks.write(target, 0, SCHEMA, batches(), checksum)

    assert info == ChunkInfo(0, 9, len(before), checksum)
    assert target.getvalue() == before


def test_chunk_that_an_earlier_release_wrote_is_read() -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        for batch in batches():
            stream.write_batch(batch)
    content = sink.getvalue()

    found = chunks.unpack(content, "k", ChunkInfo(0, 9, content.size, checksums.of(content)))

    assert pa.Table.from_batches(found).equals(pa.Table.from_batches(batches()))


def test_batch_with_another_schema_is_rejected() -> None:
    with pytest.raises(pa.ArrowInvalid, match="does not match"):
        written([*batches(), pa.record_batch({"n": [1]})])
