"""Stored rows are read one batch ahead, and may be left at any point."""

from collections.abc import AsyncGenerator

import pyarrow as pa
import pytest

from caraway_core.errors import ResultStoreError
from caraway_gateway.api.queries.answers import ChunkRows

SCHEMA = pa.schema([("n", pa.int64())])


class Store:
    """Yields batches of one row, and fails after the last one with an error, if there is one."""

    def __init__(self, count: int, error: Exception | None = None) -> None:
        self.read = 0
        self.is_closed = False
        self._count = count
        self._error = error

    async def batches(self) -> AsyncGenerator[pa.RecordBatch, None]:
        try:
            for number in range(self._count):
                self.read += 1
                yield pa.record_batch({"n": [number]})
            if self._error is not None:
                raise self._error
        finally:
            self.is_closed = True


async def test_all_rows_are_read_in_order_one_batch_ahead() -> None:
    store = Store(3)
    rows = ChunkRows(SCHEMA, store.batches())
    await rows.open()
    assert store.read == 1
    read = [batch.column(0)[0].as_py() async for batch in rows]
    assert (read, store.is_closed) == ([0, 1, 2], True)
    await rows.aclose()


async def test_a_failure_of_the_first_batch_is_raised_when_it_opens() -> None:
    rows = ChunkRows(SCHEMA, Store(0, ResultStoreError("damaged")).batches())
    with pytest.raises(ResultStoreError, match="damaged"):
        await rows.open()
    await rows.aclose()


async def test_a_later_failure_is_raised_after_the_rows_before_it() -> None:
    rows = ChunkRows(SCHEMA, Store(1, ResultStoreError("damaged")).batches())
    await rows.open()
    assert (await anext(rows)).num_rows == 1
    with pytest.raises(ResultStoreError, match="damaged"):
        await anext(rows)
    await rows.aclose()


async def test_rows_that_are_left_early_close_what_they_read() -> None:
    store = Store(100)
    rows = ChunkRows(SCHEMA, store.batches())
    await anext(rows)
    await rows.aclose()
    assert store.is_closed and store.read <= 2
