import io

import pyarrow as pa
import pytest

from caraway_plugins.sources.clickhouse.connecting import ArrowBody

BATCH = pa.record_batch({"i": [1, 2]})


def answer(batches: int, *, has_end: bool) -> io.BytesIO:
    sink = io.BytesIO()
    writer = pa.ipc.new_stream(sink, BATCH.schema)
    for _ in range(batches):
        writer.write_batch(BATCH)
    if has_end:
        writer.close()
    return io.BytesIO(sink.getvalue())


def test_answer_that_ends_is_read() -> None:
    found = pa.ipc.open_stream(io.BufferedReader(ArrowBody(answer(2, has_end=True))))
    assert found.read_all().num_rows == 4


def test_answer_that_stops_between_two_batches_is_an_error() -> None:
    # pyarrow alone takes it for one that is complete.
    assert pa.ipc.open_stream(answer(2, has_end=False)).read_all().num_rows == 4
    found = pa.ipc.open_stream(io.BufferedReader(ArrowBody(answer(2, has_end=False))))
    with pytest.raises(OSError, match="the answer ended before its rows did"):
        found.read_all()
