"""Offers of rows: only their requester reads them, once, and unread offers are dropped."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pyarrow as pa
import pytest

from caraway_core.errors import (
    AnswerCutError,
    CarawayError,
    ExecutionError,
    NotFoundError,
    OverloadedError,
    QueryCancelledError,
    QueryForbiddenError,
    ShuttingDownError,
)
from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.offers import Offer, OfferOutcome
from caraway_executor.answers import offers
from caraway_executor.answers.offers import OfferedRows, Offers
from caraway_executor.resources.room import TaskMemory
from tests.kit.stream_double import StreamDouble

SCHEMA = pa.schema([("n", pa.int64())])
LATER = 3600.0


def _batch(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int64())], schema=SCHEMA)


class _Rows(StreamDouble):
    """A stream of batches; an exception among them is raised in its place."""

    schema = SCHEMA
    reads_only_catalog = True
    written: TableName | None = None

    def __init__(self, *items: pa.RecordBatch | Exception) -> None:
        self._items = list(items)
        self.given = 0
        self.is_closed = False

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        await asyncio.sleep(0)
        if self.given == len(self._items):
            raise StopAsyncIteration
        item = self._items[self.given]
        self.given += 1
        if isinstance(item, Exception):
            raise item
        return item

    async def aclose(self) -> None:
        self.is_closed = True


class _Slots:
    """Slots for work; without one, work waits."""

    def __init__(self, count: int = 1) -> None:
        self.free = asyncio.Semaphore(count)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        async with self.free:
            yield


def _offered(
    stream: _Rows,
    name: str = "o",
    *,
    credential: str = "",
    call: str = "call",
    wait_s: float = LATER,
    slots: _Slots | None = None,
    start: Callable[[], object] | None = None,
) -> OfferedRows:
    async def opened() -> BatchStream:
        if start is not None:
            start()
        return stream

    return OfferedRows(
        Offer(name, credential, wait_s, SCHEMA),
        call,
        "scheduler",
        SCHEMA,
        opened,
        (slots or _Slots()).place,
    )


async def _all(rows: OfferedRows) -> list[int]:
    found: list[int] = []
    while (batch := await rows.read_batch()) is not None:
        found += rows.fitted(batch).column("n").to_pylist()
    return found


async def _settled(turns: int = 50) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


async def test_rows_are_read_in_order_and_counted() -> None:
    every = Offers(TaskMemory())
    stream = _Rows(_batch(1, 2), _batch(), _batch(3), _batch(*range(4, 9)))
    every.enter(_offered(stream), 0)

    rows = every.take_offer("o", None)
    assert await _all(rows) == list(range(1, 9))
    await every.end("o")

    assert await every.attend("o") == OfferOutcome(8, 64)
    assert stream.is_closed
    assert len(every) == 0 and every.origins == frozenset()
    with pytest.raises(NotFoundError, match="the rows can be read once"):
        every.take_offer("o", None)


async def test_nothing_runs_far_ahead_of_the_reader() -> None:
    stream = _Rows(*(_batch(n) for n in range(100)))
    rows = _offered(stream)
    await rows.start_task()
    await _settled()
    assert stream.given <= 3
    assert await rows.read_batch() is not None
    await _settled()
    assert stream.given <= 4
    await rows.close(QueryCancelledError("over"))
    assert stream.is_closed


async def test_only_who_asked_for_rows_can_take_them_and_only_once() -> None:
    every = Offers(TaskMemory())
    every.enter(_offered(_Rows(_batch(1)), credential="abc"), 0)

    assert not every.is_public("o")
    for wrong in ("", "abd", "abcd", "ab"):
        with pytest.raises(QueryForbiddenError, match="belongs to another key"):
            every.take_offer("o", wrong)
    rows = every.take_offer("o", "abc")
    with pytest.raises(NotFoundError, match="in use"):
        every.take_offer("o", "abc")
    # A stranger does not learn that it was taken.
    with pytest.raises(QueryForbiddenError):
        every.take_offer("o", "abd")
    assert await _all(rows) == [1]


async def test_an_unknown_offer_is_one_of_an_executor_that_restarted() -> None:
    every = Offers(TaskMemory())
    assert every.is_public("gone")
    with pytest.raises(AnswerCutError, match="has restarted; run the query again"):
        every.take_offer("gone", "abc")
    with pytest.raises(AnswerCutError, match="has restarted"):
        await every.attend("gone")
    await every.end("gone")


async def test_the_number_and_the_memory_of_offers_are_bounded() -> None:
    room = TaskMemory(100)
    every = Offers(room, most=2)
    every.enter(_offered(_Rows(), "a"), 60)
    with pytest.raises(OverloadedError, match="as many parts of answers as it may"):
        every.enter(_offered(_Rows(), "b"), 60)
    every.enter(_offered(_Rows(), "b"), 40)
    with pytest.raises(OverloadedError) as caught:
        every.enter(_offered(_Rows(), "c"), 0)
    assert caught.value.retry_after_s
    assert room.taken_bytes == 100

    for name in ("a", "a", "b"):
        await every.end(name, QueryCancelledError("over"))
    assert room.taken_bytes == 0 and len(every) == 0
    every.enter(_offered(_Rows(), "c"), 100)
    await every.aclose(ShuttingDownError("ends"))


@pytest.mark.parametrize("before", [0, 1, 5])
async def test_a_failure_comes_after_the_rows_before_it(before: int) -> None:
    stream = _Rows(*(_batch(n) for n in range(before)), ExecutionError("broken"), _batch(9))
    rows = _offered(stream)
    found: list[int] = []
    with pytest.raises(ExecutionError, match="broken"):
        while (batch := await rows.read_batch()) is not None:
            found += batch.column("n").to_pylist()
    assert found == list(range(before))
    assert stream.is_closed


async def test_a_withdrawn_offer_ends_its_reader_and_its_task() -> None:
    every = Offers(TaskMemory())
    stream = _Rows(*(_batch(n) for n in range(100)))
    every.enter(_offered(stream, "a", call="one"), 0)
    every.enter(_offered(_Rows(), "b", call="two"), 0)
    rows = every.take_offer("a", None)
    await rows.read_batch()
    ended = asyncio.create_task(every.attend("a"))
    await _settled()

    await every.end_call("one")

    with pytest.raises(QueryCancelledError, match="the query was cancelled"):
        await ended
    with pytest.raises(QueryCancelledError):
        await _all(rows)
    with pytest.raises(AnswerCutError, match="no longer there: the query was cancelled"):
        every.take_offer("a", None)
    assert stream.is_closed and len(every) == 1
    await every.aclose(ShuttingDownError("ends"))


async def test_an_offer_that_is_withdrawn_while_it_waits_for_a_slot_never_starts() -> None:
    slots = _Slots()
    started: list[bool] = []
    every = Offers(TaskMemory())
    stream = _Rows(*(_batch(n) for n in range(100)))
    every.enter(_offered(stream, slots=slots, start=lambda: started.append(True)), 0)
    rows = every.take_offer("o", None)
    async with slots.free:
        reader = asyncio.create_task(rows.read_batch())
        await _settled()
        await every.end_call("call")
    with pytest.raises(QueryCancelledError):
        await reader
    await _settled()
    assert started == [] and stream.given == 0
    assert not slots.free.locked()


async def test_a_reader_that_waits_for_its_first_row_hears_of_the_end() -> None:
    never = asyncio.Event()

    class _Stuck(_Rows):
        async def __anext__(self) -> pa.RecordBatch:
            await never.wait()
            raise StopAsyncIteration

    stream = _Stuck()
    rows = _offered(stream)
    readers = [asyncio.create_task(work) for work in (rows.start_task(), rows.read_batch())]
    await _settled()
    await rows.close(ShuttingDownError("the executor stops"))
    for reader in readers:
        with pytest.raises(ShuttingDownError):
            await reader
    assert stream.is_closed
    with pytest.raises(ShuttingDownError):
        await rows.read_batch()


async def test_rows_that_nobody_fetches_are_dropped() -> None:
    every = Offers(TaskMemory())
    stream = _Rows(_batch(1))
    rows = _offered(stream, wait_s=0.0)
    await rows.start_task()
    every.enter(rows, 0)
    with pytest.raises(QueryCancelledError, match="did not fetch the rows in time"):
        await every.attend("o")
    assert stream.is_closed and len(every) == 0


async def test_a_reader_that_is_stalled_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    every = Offers(TaskMemory())
    idle, read = _offered(_Rows(_batch(1)), "idle"), _offered(_Rows(_batch(1)), "read")
    cut: list[str] = []
    for rows in (idle, read):
        every.enter(rows, 0)
        rows.on_stalled = lambda: cut.append("cut")
    every.take_offer("read", None)
    monkeypatch.setattr(offers, "STALLED_S", -1.0)
    every.end_stalled()
    with pytest.raises(AnswerCutError, match="has read nothing"):
        await every.attend("read")
    assert cut == ["cut"] and len(every) == 1  # What nobody took waits for its own time.
    await every.aclose(ShuttingDownError("ends"))


async def test_only_the_newest_ends_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "_MOST_ENDED", 2)
    every = Offers(TaskMemory())
    errors: Sequence[CarawayError | None] = (None, QueryCancelledError("b ended"), None)
    for name, error in zip("abc", errors, strict=True):
        every.enter(_offered(_Rows(), name), 0)
        await every.end(name, error)
    with pytest.raises(AnswerCutError, match="has restarted"):
        await every.attend("a")
    with pytest.raises(AnswerCutError, match="b ended"):
        await every.attend("b")
    assert await every.attend("c") == OfferOutcome(0, 0)


async def test_a_reader_that_goes_away_leaves_nothing_behind() -> None:
    every = Offers(TaskMemory())
    stream = _Rows(*(_batch(n) for n in range(100)))
    every.enter(_offered(stream), 0)
    rows = every.take_offer("o", None)
    await rows.read_batch()
    every.left(rows)
    with pytest.raises(QueryCancelledError, match="the client went away"):
        await every.attend("o")
    assert stream.is_closed and len(every) == 0
