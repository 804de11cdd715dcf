"""The metadata of messages says what Arrow's own reader finds."""

from itertools import pairwise

import pyarrow as pa
import pytest

from caraway_core.tables import ipc_messages

ROWS = pa.record_batch({
    "a": pa.array([1, None, 3]),
    "d": pa.array(["x", "y", "x"]).dictionary_encode(),
    "l": pa.array([["long text of a list"], None, []], pa.list_(pa.string_view())),
})  # fmt: skip


def messages(compression: str | None = None) -> list[pa.Message]:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, ROWS.schema, options=options) as out:
        out.write_batch(ROWS)
    return list(pa.ipc.MessageReader.open_stream(sink.getvalue()))


def test_rows_and_dictionaries_have_buffers_within_their_body() -> None:
    schema, dictionary, rows = messages()
    assert ipc_messages.rows_of(schema.metadata.to_pybytes()) is None
    for message, lengths in ((dictionary, [2]), (rows, [3, 3, 3, 1])):
        metadata = message.metadata.to_pybytes()
        place = ipc_messages.rows_of(metadata)
        assert place is not None
        assert [length for length, _ in ipc_messages.nodes(metadata, place)] == lengths
        assert ipc_messages.body_bytes(metadata) == message.body.size
        ends = [start + length for start, length in ipc_messages.buffers(metadata, place)]
        assert ends == sorted(ends)
        assert ends[-1] <= message.body.size
        assert not ipc_messages.is_compressed(metadata, place)


def test_compressed_buffers_are_known() -> None:
    metadata = messages("lz4")[-1].metadata.to_pybytes()
    place = ipc_messages.rows_of(metadata)
    assert place is not None
    assert ipc_messages.is_compressed(metadata, place)


@pytest.mark.parametrize("alignment", [8, 64, 4096])
def test_aligned_buffers_keep_their_lengths(alignment: int) -> None:
    metadata = bytearray(messages()[-1].metadata.to_pybytes())
    place = ipc_messages.rows_of(metadata)
    assert place is not None
    before = [length for _, length in ipc_messages.buffers(metadata, place)]

    ipc_messages.align_buffers(metadata, place, alignment)

    after = list(ipc_messages.buffers(metadata, place))
    assert [length for _, length in after] == before
    assert all(start % alignment == 0 for start, _ in after)
    spans = [(start, start + length) for start, length in after if length]
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert ipc_messages.body_bytes(metadata) >= spans[-1][1]
    assert ipc_messages.body_bytes(metadata) % alignment == 0
