"""The ends of pages, and of answers that are not read to the end."""

import asyncio
from collections.abc import Sequence

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError, QueryCancelledError, ShuttingDownError
from caraway_core.ids import new_query_id
from caraway_core.protocols.fleet import AnswerPage
from caraway_executor.answers.cursors import Cursors
from tests.kit.clocks import Clock
from tests.kit.storing import Rows
from tests.kit.stubborn import StubbornRows, cancel_in_clean_up


def numbers(start: int, count: int = 10) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(start, start + count), pa.int64())})


def rows(page: AnswerPage) -> list[int]:
    return [n for batch in page.batches for n in batch["n"].to_pylist()]


class Slow(Rows):
    """Rows that come only when they may, after the first `at_once` batches."""

    def __init__(
        self, batches: Sequence[pa.RecordBatch], at_once: int, error: Exception | None = None
    ) -> None:
        super().__init__(batches, error=error)
        self.may_go = asyncio.Event()
        self._at_once = at_once

    async def __anext__(self) -> pa.RecordBatch:
        if self.given >= self._at_once:
            await self.may_go.wait()
        return await super().__anext__()


async def test_page_ends_at_its_bytes() -> None:
    cursors = Cursors(Clock(), page_bytes=160)
    page = await cursors.open(new_query_id(), "", Rows([numbers(n) for n in range(0, 50, 10)]))
    pages = [page]
    while not page.is_last:
        page = await cursors.next(page.cursor)
        pages.append(page)
    assert [len(rows(each)) for each in pages] == [20, 20, 10]
    assert not len(cursors)


async def test_page_with_rows_does_not_wait_for_those_that_come_slowly() -> None:
    cursors = Cursors(Clock(), page_s=0.01)
    stream = Slow([numbers(0), numbers(10)], at_once=1)
    page = await cursors.open(new_query_id(), "", stream)
    assert (rows(page), page.is_last) == (list(range(10)), False)
    stream.may_go.set()
    page = await cursors.next(page.cursor)
    assert (rows(page), page.is_last) == (list(range(10, 20)), True)


async def test_page_without_rows_waits_for_them() -> None:
    cursors = Cursors(Clock(), page_s=0.0)
    stream = Slow([numbers(0)], at_once=0)
    opening = asyncio.ensure_future(cursors.open(new_query_id(), "", stream))
    await asyncio.wait((opening,), timeout=0.05)
    assert not opening.done()
    stream.may_go.set()
    assert rows(await opening) == list(range(10))


async def test_page_ends_by_the_clock_also_when_rows_come_fast() -> None:
    clock = Clock()

    class Timed(Rows):
        async def __anext__(self) -> pa.RecordBatch:
            clock.now += 0.4
            return await super().__anext__()

    cursors = Cursors(clock)
    stream = Timed([numbers(n) for n in range(0, 90, 10)])
    page = await cursors.open(new_query_id(), "", stream)
    assert (len(rows(page)), page.is_last) == (30, False)
    await cursors.aclose()


async def test_failure_after_a_page_comes_with_the_next_one() -> None:
    cursors = Cursors(Clock(), page_s=0.01)
    stream = Slow([numbers(0)], at_once=1, error=ExecutionError("broken"))
    page = await cursors.open(new_query_id(), "", stream)
    stream.may_go.set()
    with pytest.raises(ExecutionError, match="broken"):
        await cursors.next(page.cursor)
    assert stream.is_closed


async def test_closing_stops_the_batch_that_is_on_its_way() -> None:
    before = asyncio.all_tasks()
    cursors = Cursors(Clock(), page_s=0.01)
    stream = Slow([numbers(0), numbers(10)], at_once=1)
    page = await cursors.open(new_query_id(), "", stream)
    assert asyncio.all_tasks() != before
    await cursors.close(page.cursor)
    assert asyncio.all_tasks() == before
    assert stream.is_closed
    with pytest.raises(ShuttingDownError, match="nobody read it"):
        await cursors.next(page.cursor)


async def test_cancelled_query_ends_a_page_that_is_waited_for() -> None:
    before = asyncio.all_tasks()
    cursors = Cursors(Clock())
    query_id = new_query_id()
    stream = Slow([numbers(0)], at_once=0)
    opening = asyncio.ensure_future(cursors.open(query_id, "", stream))
    await asyncio.wait((opening,), timeout=0.01)
    await cursors.close_call(query_id)
    with pytest.raises(QueryCancelledError):
        await opening
    assert asyncio.all_tasks() == before
    assert stream.is_closed


async def test_closing_that_is_cancelled_closes_the_stream() -> None:
    """Otherwise the engine would go on with a statement that has no reader."""
    cursors = Cursors(Clock(), page_bytes=1)
    stream = StubbornRows(numbers(0))
    page = await cursors.open("call", "here", stream)
    reading = asyncio.ensure_future(cursors.next(page.cursor))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(cursors.close(page.cursor))
    await cancel_in_clean_up(closing, stream)
    assert stream.is_closed and not len(cursors)
    stream.may_end.set()
    await asyncio.wait((reading,), timeout=60)
    assert reading.done()


@pytest.mark.parametrize("by", ["call", "all"])
async def test_one_result_that_fails_to_close_does_not_keep_the_others_open(by: str) -> None:
    cursors = Cursors(Clock(), page_bytes=1)
    bad = [StubbornRows(numbers(0), OSError("gone")) for _ in range(2)]
    good = [StubbornRows(numbers(0)) for _ in range(2)]
    for stream in (bad[0], good[0], bad[1], good[1]):
        await cursors.open("call", "here", stream)
    with pytest.raises(OSError, match="gone"):
        await (cursors.close_call("call") if by == "call" else cursors.aclose())
    assert all(stream.is_closed for stream in (*bad, *good))
    assert not len(cursors)


async def test_a_forgotten_result_that_fails_to_close_does_not_stop_the_heartbeat(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    cursors = Cursors(clock, page_bytes=1)
    bad, good = StubbornRows(numbers(0), OSError("gone")), StubbornRows(numbers(0))
    await cursors.open("a", "here", bad)
    await cursors.open("b", "here", good)
    clock.now += 301
    await cursors.close_forgotten()
    assert bad.is_closed and good.is_closed and not len(cursors)
    assert "could not be closed" in caplog.text


async def test_only_results_that_nobody_reads_are_forgotten() -> None:
    clock = Clock()
    cursors = Cursors(clock, page_bytes=1)
    old, read = StubbornRows(numbers(0)), StubbornRows(numbers(0))
    page = await cursors.open("a", "here", old)
    other = await cursors.open("b", "there", read)
    assert cursors.origins == {"here", "there"}
    reading = asyncio.ensure_future(cursors.next(other.cursor))
    await asyncio.sleep(0)
    clock.now += 301
    await cursors.close_forgotten()
    assert old.is_closed and not read.is_closed and cursors.origins == {"there"}
    with pytest.raises(ShuttingDownError, match=r"nobody read it for 300 s.*run the statement"):
        await cursors.next(page.cursor)
    read.may_end.set()
    await cursors.close(other.cursor)
    await asyncio.wait((reading,), timeout=60)


async def test_closing_what_is_not_open_does_nothing() -> None:
    cursors = Cursors(Clock())
    await cursors.close("nothing")
    await cursors.close_call("nothing")
    await cursors.aclose()
