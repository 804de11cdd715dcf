"""Streams with aligned buffers hold the rows of any type, however Arrow writes them in pieces."""

import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from caraway_plugins.stores import aligned_streams

VALUES: dict[str, tuple[list[Any], pa.DataType]] = {
    "null": ([None] * 3, pa.null()),
    "bool": ([True, None, False], pa.bool_()),
    "int8": ([1, None, -1], pa.int8()),
    "decimal": ([Decimal("1.5"), None, Decimal("-2.5")], pa.decimal128(20, 1)),
    "text": (["a", None, "a text of more than twelve"], pa.string()),
    "large": (["a", None, "b"], pa.large_string()),
    "view": (["a", None, "a text of more than twelve"], pa.string_view()),
    "bytes": ([b"a", None, b"bytes of more than twelve"], pa.binary_view()),
    "fixed": ([b"abc", None, b"def"], pa.binary(3)),
    "dictionary": (["a", None, "b"], pa.dictionary(pa.int8(), pa.string())),
    "list": ([["a"], None, []], pa.list_(pa.string_view())),
    "large list": ([[1, None], None, []], pa.large_list(pa.int64())),
    "sized": ([[1, 2], None, [3, 4]], pa.list_(pa.int16(), 2)),
    "struct": ([{"a": 1, "b": "x"}, None, {"a": None, "b": None}],
               pa.struct({"a": pa.int64(), "b": pa.string_view()})),
    "map": ([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
}  # fmt: skip
COLUMNS = {name: pa.array(*given) for name, given in VALUES.items()} | {
    "union": pa.UnionArray.from_sparse(
        pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])]
    ),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([7, None])),
}


def stream(rows: list[pa.RecordBatch]) -> bytes:
    target = io.BytesIO()
    aligned_streams.write(target, rows[0].schema, rows)
    return target.getvalue()


def read(content: bytes) -> list[pa.RecordBatch]:
    return list(pa.ipc.open_stream(content))


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("first", [0, 1, 3])
def test_rows_of_each_type_come_back(name: str, first: int) -> None:
    whole = pa.record_batch({"id": pa.array([1, 2, 3], pa.int8()), name: COLUMNS[name]})
    rows = [whole, whole.slice(first), whole.slice(0, 0)]
    found = read(stream(rows))
    assert [each.to_pylist() for each in found] == [each.to_pylist() for each in rows]
    assert found[0].schema.equals(whole.schema)


def test_dictionaries_may_change_from_batch_to_batch() -> None:
    rows = [
        pa.record_batch({"d": pa.array(each).dictionary_encode()})
        for each in (["a", "b"], ["c", "b", "d"], ["a"])
    ]
    assert [each.to_pylist() for each in read(stream(rows))] == [each.to_pylist() for each in rows]


def test_a_stream_without_batches_has_its_schema() -> None:
    schema = pa.schema({"a": pa.int64()}, metadata={"made": "here"})
    target = io.BytesIO()
    aligned_streams.write(target, schema, [])
    found = pa.ipc.open_stream(target.getvalue())
    assert found.schema.equals(schema, check_metadata=True)
    assert list(found) == []


@pytest.mark.parametrize("size", [1, 7, 8, 64, 1000])
def test_messages_arrive_in_pieces_of_any_size(size: int) -> None:
    whole = pa.record_batch({**COLUMNS, "long": pa.array([1 << 40, 2, 3])})
    plain = pa.BufferOutputStream()
    with pa.ipc.new_stream(plain, whole.schema) as out:
        out.write_batch(whole)
        out.write_batch(whole)
    content, target = plain.getvalue(), io.BytesIO()
    messages = aligned_streams._Messages(target)
    for start in range(0, content.size, size):
        messages.write(content.slice(start, min(size, content.size - start)))
    assert target.getvalue() == stream([whole, whole])


def test_the_error_of_a_file_is_raised_as_it_is() -> None:
    class Full(io.BytesIO):
        def write(self, block: Any, /) -> int:
            raise OSError(28, "no space")

    with pytest.raises(OSError, match="no space") as caught:
        aligned_streams.write(Full(), pa.schema({"a": pa.int64()}), [])
    assert caught.value.errno == 28
