import random

import pyarrow as pa
import pytest

from caraway_engine.rows import choosing
from tests.executor.stored_numbers import everything


def table() -> pa.RecordBatch:
    rows = everything()
    rows = rows.append_column("views", pa.array([["x"], None, ["y", None]],
                                                pa.list_(pa.string_view())))  # fmt: skip
    runs = pa.array(["a", "a", "b"], pa.run_end_encoded(pa.int32(), pa.string()))
    rows = rows.append_column("runs", runs)
    batches = [rows.to_batches()[0].slice(start, 3) for start in (0, 1, 2, 0, 1)]
    return pa.concat_batches(batches)


@pytest.mark.parametrize("start", [0, 3])
def test_rows_of_every_type_are_chosen(start: int) -> None:
    batch = table().slice(start, 6)
    draw = random.Random(1)
    for _ in range(20):
        is_chosen = [draw.random() < 0.6 for _ in range(6)]
        rows = [row for row, chosen in enumerate(is_chosen) if chosen]
        wanted = [batch.to_pylist()[row] for row in rows]
        found = choosing.filtered(batch, pa.array(is_chosen, pa.bool_()))
        found.validate(full=True)
        assert str(found.to_pylist()) == str(wanted)
        draw.shuffle(rows)
        found = choosing.taken(batch, pa.array(rows, pa.int64()))
        found.validate(full=True)
        assert str(found.to_pylist()) == str([batch.to_pylist()[row] for row in rows])
        assert found.schema.equals(batch.schema)


def test_texts_are_shared_and_not_counted_again() -> None:
    texts = pa.array([f"a text of more than twelve {n}" for n in range(1000)], pa.string_view())
    batch = pa.record_batch({"t": texts, "n": pa.array(range(1000))})
    before = pa.total_allocated_bytes()
    found = choosing.filtered(batch, pa.array([n % 2 == 0 for n in range(1000)]))

    assert pa.total_allocated_bytes() - before < 16_000
    assert choosing.size_bytes(found) == 500 * 24
