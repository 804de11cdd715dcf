import asyncio

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError
from caraway_core.protocols.fleet import AnswerPage
from caraway_scheduler.dispatch.fleets.paging import PagedStream
from tests.kit.turns import turn


def batch(number: int) -> pa.RecordBatch:
    return pa.record_batch({"n": [number]})


class Pages:
    """Pages that a test provides one by one; the first one is present."""

    def __init__(self, count: int, fails_at: int = -1) -> None:
        self.count = count
        self.fails_at = fails_at
        self.asked = 0
        self.closed: list[str] = []
        self.may_go = asyncio.Event()
        self.may_go.set()

    def stream(self) -> PagedStream:
        first = AnswerPage("c", (batch(0),), self.count == 1, batch(0).schema)
        return PagedStream(first, self)

    async def fetch_page(self, cursor: str) -> AnswerPage:
        self.asked += 1
        number = self.asked
        await self.may_go.wait()
        if number == self.fails_at:
            raise ExecutionError("broken")
        return AnswerPage(cursor, (batch(number),), number == self.count - 1)

    async def close_answer(self, cursor: str) -> None:
        self.closed.append(cursor)


async def numbers(stream: PagedStream) -> list[int]:
    return [each.column(0)[0].as_py() async for each in stream]


@pytest.mark.parametrize("count", [1, 2, 5])
async def test_every_page_comes_once_and_nothing_is_left_open(count: int) -> None:
    pages = Pages(count)
    stream = pages.stream()
    assert await numbers(stream) == list(range(count))
    assert pages.asked == count - 1
    await stream.aclose()
    assert pages.closed == []


async def test_one_page_is_fetched_ahead_and_not_two() -> None:
    pages = Pages(9)
    stream = pages.stream()
    await turn()
    assert pages.asked == 0
    await anext(stream)
    await turn()
    assert pages.asked == 1
    await anext(stream)
    await turn()
    assert pages.asked == 2
    await stream.aclose()


async def test_closing_stops_the_fetch_under_way_and_closes_once() -> None:
    pages = Pages(3)
    pages.may_go.clear()
    stream = pages.stream()
    await anext(stream)
    await turn()
    await stream.aclose()
    await stream.aclose()
    assert pages.closed == ["c"]
    assert await numbers(stream) == []


async def test_failed_page_is_raised_after_the_rows_before_it() -> None:
    pages = Pages(5, fails_at=2)
    stream = pages.stream()
    assert (await anext(stream)).column(0)[0].as_py() == 0
    assert (await anext(stream)).column(0)[0].as_py() == 1
    with pytest.raises(ExecutionError, match="broken"):
        await anext(stream)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_cancelled_reader_closes_the_answer() -> None:
    pages = Pages(3)
    pages.may_go.clear()
    stream = pages.stream()
    await anext(stream)
    waiting = asyncio.ensure_future(anext(stream))
    await turn()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert pages.closed == ["c"]
