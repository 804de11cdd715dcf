"""Wrapped streams pass on the methods that they do not change."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pyarrow as pa

from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.wrapped_streams import WrappedStream
from tests.kit.stream_double import StreamDouble


class Rows(StreamDouble):
    """A stream of two batches."""

    schema = pa.schema({"n": pa.int64()})
    reads_only_catalog = True
    written = None

    def __init__(self) -> None:
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        for n in range(2):
            yield pa.RecordBatch.from_pydict({"n": [n]}, schema=self.schema)

    async def aclose(self) -> None:
        self.is_closed = True


async def test_streams_are_passed_on() -> None:
    rows = Rows()
    stream = WrappedStream(cast(BatchStream, rows))
    assert (stream.schema, stream.reads_only_catalog, stream.written) == (rows.schema, True, None)
    assert not stream.is_at_end and stream.traits is rows.traits
    assert [batch.to_pydict() async for batch in stream] == [{"n": [0]}, {"n": [1]}]
    await stream.aclose()
    assert rows.is_closed


def test_a_stream_that_is_known_to_end_says_so() -> None:
    rows: Any = Rows()
    rows.is_at_end = True
    assert WrappedStream(rows).is_at_end
