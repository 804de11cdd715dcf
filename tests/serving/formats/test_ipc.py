"""Arrow IPC streams that readers without string views, dictionary deltas or our memory read."""

import pyarrow as pa
import pytest

from caraway_serving.formats.ipc import IpcStream
from tests.serving.formats.encoding import encode


def read(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


VIEWS = [
    (pa.string_view(), pa.string(), ["a", None, "long enough not to be inlined"]),
    (pa.binary_view(), pa.binary(), [b"a", None]),
    (pa.list_(pa.string_view()), pa.list_(pa.string()), [["a"], None, []]),
    (pa.struct([("s", pa.string_view())]), pa.struct([("s", pa.string())]), [{"s": "x"}, None]),
    (
        pa.map_(pa.string_view(), pa.int8()),
        pa.map_(pa.string(), pa.int8()),
        [[("k", 1)], None],
    ),
]


@pytest.mark.parametrize(("type_", "plain", "values"), VIEWS, ids=str)
def test_views_become_plain_types(
    type_: pa.DataType, plain: pa.DataType, values: list[object]
) -> None:
    batch = pa.record_batch({"c": pa.array(values, plain).cast(type_)})
    found = read(encode("arrow", batch))
    assert found.schema.types == [plain]
    assert found["c"].to_pylist() == values


def test_dictionaries_may_differ_between_batches() -> None:
    batches = [
        pa.record_batch({"c": pa.array(values).dictionary_encode()})
        for values in (["a", "b"], ["c"], ["b", "c", None])
    ]
    found = read(encode("arrow", *batches))
    assert found["c"].to_pylist() == ["a", "b", "c", "b", "c", None]


def test_each_batch_can_be_read_before_the_next_is_made() -> None:
    batch = pa.record_batch({"c": [1, 2]})
    encoder = IpcStream()
    sent = encoder.encode_start(batch.schema)
    for number in range(3):
        sent += encoder.encode(batch)
        reader = pa.ipc.open_stream(sent)
        assert sum(reader.read_next_batch().num_rows for _ in range(number + 1)) == 2 * number + 2
    assert encoder.encode(batch)
    assert encoder.end(1) and not encoder._take()


def test_metadata_and_nullability_of_columns_are_kept() -> None:
    field = pa.field("c", pa.int8(), nullable=False, metadata={"a": "b"})
    batch = pa.RecordBatch.from_arrays([pa.array([1], pa.int8())], schema=pa.schema([field]))
    found = read(encode("arrow", batch)).schema.field("c")
    assert (found.nullable, found.metadata) == (False, {b"a": b"b"})
