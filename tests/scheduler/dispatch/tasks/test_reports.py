"""Tasks of the last stage report when all their rows were read, and only then."""

from collections.abc import AsyncIterator

import pyarrow as pa

from caraway_scheduler.dispatch.tasks.reports import ReportedStream
from tests.kit.stream_double import StreamDouble

SCHEMA = pa.schema({"n": pa.int64()})


class Rows(StreamDouble):
    """Two batches of three and of one row."""

    schema = SCHEMA
    reads_only_catalog = True
    written = None
    is_at_end = True

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        for count in (3, 1):
            yield pa.record_batch({"n": list(range(count))}, schema=SCHEMA)

    async def aclose(self) -> None:
        self.is_closed = True


async def test_the_end_is_reported_once_with_rows_and_bytes() -> None:
    ends: list[tuple[int, int]] = []
    stream = ReportedStream(Rows(), lambda *sizes: ends.append(sizes))
    assert not stream.is_at_end, "readers that stop early would never see the end"
    assert [batch.num_rows async for batch in stream] == [3, 1]
    assert ends == [(4, 32)]


async def test_a_stream_that_is_closed_early_reports_nothing() -> None:
    ends: list[tuple[int, int]] = []
    rows = Rows()
    stream = ReportedStream(rows, lambda *sizes: ends.append(sizes))
    await anext(stream)
    await stream.aclose()
    assert ends == [] and rows.is_closed
