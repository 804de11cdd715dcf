"""The reader of a merged stream receives every exception of its parts."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pyarrow as pa
import pytest

from caraway_core.errors import AnswerCutError
from caraway_core.protocols.dispatch import BatchStream
from caraway_scheduler.dispatch.merging import MergedStream
from tests.kit.panics import Panic

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
