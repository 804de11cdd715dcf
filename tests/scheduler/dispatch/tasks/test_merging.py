"""The reader of a merged stream receives every exception of its parts."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pyarrow as pa
import pytest

from caraway_core.errors import AnswerCutError
from caraway_core.protocols.dispatch import BatchStream
from caraway_scheduler.dispatch.tasks.merging import MergedStream
from tests.kit.panics import Panic
from tests.kit.stubborn import StubbornRows, cancel_in_clean_up

BATCH = pa.record_batch({"n": [1]})


class RaisingPart:
    """Yields one batch, then raises."""

    def __init__(self, raised: BaseException | None = None) -> None:
        self._raised = raised

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        yield BATCH
        if self._raised is not None:
            raise self._raised

    async def aclose(self) -> None:
        return


@pytest.mark.parametrize(
    ("raised", "seen"),
    [
        (Panic("rust"), Panic),
        (BaseExceptionGroup("two", [Panic()]), BaseExceptionGroup),
        (asyncio.CancelledError(), AnswerCutError),
        (KeyError("x"), KeyError),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_what_a_part_raises_is_raised_to_the_reader(
    raised: BaseException, seen: type[BaseException]
) -> None:
    parts = cast(list[BatchStream], [RaisingPart(), RaisingPart(raised)])
    merged: Any = MergedStream(parts, BATCH.schema, True, lambda _rows, _bytes: None)
    async with asyncio.timeout(60):
        with pytest.raises(seen):
            async for _ in merged:
                pass


@pytest.mark.parametrize("parts", [1, 3])
async def test_closing_that_is_cancelled_closes_every_part(parts: int) -> None:
    """Else executors would go on with tasks of a statement that has ended."""
    streams = [StubbornRows(BATCH) for _ in range(parts)]
    counted: list[tuple[int, int]] = []
    merged: Any = MergedStream(
        cast(list[BatchStream], streams), BATCH.schema, True, lambda *sizes: counted.append(sizes)
    )
    for _ in range(parts):
        assert (await anext(merged)).num_rows == 1
    reading = asyncio.ensure_future(anext(merged))
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(merged.aclose())
    if parts > 1:
        await cancel_in_clean_up(closing, streams[0])
    else:
        await closing
    assert all(stream.is_closed for stream in streams)
    assert [rows for rows, _ in counted] == [parts]
    for stream in streams:
        stream.may_end.set()
    reading.cancel()
    await asyncio.wait((reading,), timeout=60)
    await merged.aclose()
    assert len(counted) == 1


async def test_a_part_that_fails_to_close_does_not_keep_the_others_open() -> None:
    streams = [StubbornRows(BATCH, OSError("gone")), StubbornRows(BATCH)]
    merged: Any = MergedStream(
        cast(list[BatchStream], streams), BATCH.schema, True, lambda _rows, _bytes: None
    )
    await anext(merged)
    for stream in streams:
        stream.may_end.set()
    await merged.aclose()
    assert all(stream.is_closed for stream in streams)
    with pytest.raises(StopAsyncIteration):
        await anext(merged)
