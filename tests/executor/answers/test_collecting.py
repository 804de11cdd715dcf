"""Rows of a task are collected in compact tables, with plain types."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pyarrow as pa

from caraway_core.protocols.dispatch import BatchStream
from caraway_executor.answers import collecting
from caraway_executor.answers.collecting import PlainStream

SCHEMA = pa.schema([("name", pa.string_view())])


class ViewRows:
    """Batches of views, as the engine produces them."""

    schema = SCHEMA
    is_at_end = False

    def __init__(self, count: int) -> None:
        self.is_closed = False
        self._count = count

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        for number in range(self._count):
            yield pa.record_batch([pa.array([f"row {number}"], pa.string_view())], schema=SCHEMA)

    async def aclose(self) -> None:
        self.is_closed = True


async def test_a_stream_has_the_plain_types_that_serialize_well() -> None:
    rows = ViewRows(2)
    stream = PlainStream(cast(BatchStream, rows), SCHEMA)
    batches = [batch async for batch in stream]
    assert [batch.column(0).to_pylist() for batch in batches] == [["row 0"], ["row 1"]]
    assert {str(batch.schema.field(0).type) for batch in batches} <= {"string", "large_string"}
    assert all(batch.schema.equals(stream.schema) for batch in batches)


async def test_closing_closes_the_rows_below() -> None:
    rows = ViewRows(1)
    stream = PlainStream(cast(BatchStream, rows), SCHEMA)
    assert not stream.is_at_end
    await stream.aclose()
    assert rows.is_closed


async def test_small_batches_are_put_together_to_chunks_of_a_size() -> None:
    rows: Any = ViewRows(6)
    whole = [table async for table in collecting.chunks(rows, SCHEMA)]
    assert [table.num_rows for table in whole] == [6]
    each = [table.num_rows async for table in collecting.chunks(ViewRows(6), SCHEMA, 1)]  # type: ignore[arg-type]
    assert each == [1] * 6
    assert [table async for table in collecting.chunks(ViewRows(0), SCHEMA)] == []  # type: ignore[arg-type]
