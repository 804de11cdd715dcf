"""Batches cut into messages."""

import pyarrow as pa

from caraway_serving.flight import messages

SCHEMA = pa.schema([("s", pa.string())])


def test_large_batch_becomes_messages_that_small_clients_take() -> None:
    batch = pa.record_batch({"s": [f"{number:01000d}" for number in range(10_000)]})
    (cut,) = messages.cut(batch, SCHEMA)
    assert max(each.nbytes for each in cut.to_batches()) <= 2 * 1024 * 1024
    assert cut.column("s").to_pylist() == batch.column("s").to_pylist()


def test_messages_may_have_to_be_smaller() -> None:
    batch = pa.record_batch({"s": ["x" * 100] * 1_000})
    (cut,) = messages.cut(batch, SCHEMA, 1_024)
    assert max(each.nbytes for each in cut.to_batches()) <= 1_024
    assert cut.num_rows == 1_000


def test_row_larger_than_a_message_stays_one_row() -> None:
    batch = pa.record_batch({"s": ["x" * 5_000_000] * 2})
    (cut,) = messages.cut(batch, SCHEMA)
    assert [each.num_rows for each in cut.to_batches()] == [1, 1]


def test_batch_takes_the_announced_schema() -> None:
    batch = pa.record_batch([pa.array(["x"], pa.string_view())], names=["s"])
    (table,) = messages.cut(batch, SCHEMA)
    assert table.schema == SCHEMA


def test_empty_batch_is_no_message() -> None:
    assert list(messages.cut(pa.record_batch({"s": pa.array([], pa.string())}), SCHEMA)) == []
