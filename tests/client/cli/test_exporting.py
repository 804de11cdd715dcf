import io
from itertools import count

import pyarrow as pa

from caraway.cli import exporting
from caraway.rows.readers import RecordReader


class Batches:
    """Prepared batches."""

    def __init__(self, *batches: pa.RecordBatch) -> None:
        self._batches = list(batches)
        self.is_closed = False

    def read_schema(self) -> pa.Schema:
        return self._batches[0].schema

    def read_batch(self) -> pa.RecordBatch | None:
        return self._batches.pop(0) if self._batches else None

    def close(self) -> None:
        self.is_closed = True


def test_progress_counts_rows_and_ends_its_line() -> None:
    batch = pa.record_batch({"n": range(1000)})
    source = Batches(batch, batch)
    ticks, shown = count(), io.StringIO()

    reader = RecordReader(source, source.read_schema(), source.read_batch())
    rows = sum(
        each.num_rows for each in exporting.watched(reader, shown, lambda: float(next(ticks)))
    )

    assert rows == 2000
    assert source.is_closed
    assert shown.getvalue() == (
        "\r\033[K1,000 rows, 0.0 MB, 1,000 rows/s"
        "\r\033[K2,000 rows, 0.0 MB, 1,000 rows/s"
        "\r\033[K2,000 rows, 0.0 MB, 667 rows/s\n"
    )
