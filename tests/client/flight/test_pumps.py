"""Pumps: rows ahead of the reader, bounded; closing from any thread ends the other."""

import threading
from collections.abc import Callable

import pyarrow as pa
import pytest

from caraway.flight.pumps import BATCHES_AHEAD, BatchPump
from caraway.rows.readers import opened
from tests.client.flight.pumping import SCHEMA, WAIT_S, Feed, batch, ended


def until(condition: Callable[[], bool]) -> None:
    moment = threading.Event()
    for _ in range(3000):
        if condition():
            return
        moment.wait(0.01)
    raise AssertionError("it does not come true")


def test_all_batches_come_in_order_and_the_thread_ends() -> None:
    feed = Feed(50)
    pump = BatchPump(feed, "test")
    assert pump.read_schema() == SCHEMA
    found = []
    while (each := pump.read_batch()) is not None:
        found.append(each)
    assert found == [batch(number) for number in range(1, 51)]
    assert pump.read_batch() is None and ended(pump)


def test_a_reader_that_pauses_makes_the_server_pause() -> None:
    feed = Feed(1000)
    pump = BatchPump(feed, "test")
    pump.read_schema()
    pump.read_batch()
    until(lambda: feed.taken >= BATCHES_AHEAD)
    # One is taken, some wait in the queue, and one is held by the thread.
    assert feed.taken <= BATCHES_AHEAD + 2
    pump.close()
    assert feed.cancelled.is_set() and ended(pump)


@pytest.mark.parametrize("error", [ConnectionError("lost"), pa.ArrowInvalid("bad")])
def test_an_error_comes_after_the_rows_before_it(error: Exception) -> None:
    feed = Feed(3, error=error)
    pump = BatchPump(feed, "test")
    pump.read_schema()
    assert [pump.read_batch() for _ in range(3)] == [batch(1), batch(2), batch(3)]
    with pytest.raises(type(error), match=str(error)):
        pump.read_batch()
    assert ended(pump) and pump.read_batch() is None


@pytest.mark.parametrize("stalls_at", [0, 1, 3])
def test_closing_ends_a_thread_that_waits_for_the_server(stalls_at: int) -> None:
    feed = Feed(5, stalls_at)
    pump = BatchPump(feed, "test")
    assert feed.stalled.wait(WAIT_S)
    pump.close()
    pump.close()
    assert feed.cancelled.is_set() and ended(pump)
    assert pump.read_batch() is None


@pytest.mark.parametrize("stalls_at", [0, 1])
def test_closing_wakes_a_reader_in_another_thread(stalls_at: int) -> None:
    feed = Feed(5, stalls_at)
    pump = BatchPump(feed, "test")
    seen: list[object] = []

    def read() -> None:
        try:
            seen.append(pump.read_schema())
            seen.append(pump.read_batch())
        except ConnectionError as error:
            seen.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    assert feed.stalled.wait(WAIT_S)
    pump.close()
    thread.join(WAIT_S)
    assert not thread.is_alive() and len(seen) >= 1


def test_a_pump_that_nobody_reads_ends_when_it_is_closed() -> None:
    pump = BatchPump(Feed(1000), "test")
    until(lambda: pump._ready.full())
    pump.close()
    assert ended(pump)


def test_a_cancel_that_fails_does_no_harm() -> None:
    class Failing(Feed):
        def cancel(self) -> None:
            super().cancel()
            raise OSError("the connection is gone")

    feed = Failing(5, stalls_at=2)
    pump = BatchPump(feed, "test")
    pump.read_schema()
    assert pump.read_batch() == batch(1)
    assert feed.stalled.wait(WAIT_S)
    pump.close()
    assert ended(pump)


def test_a_reader_over_a_pump_closes_it_at_the_end() -> None:
    pump = BatchPump(Feed(7), "test")
    table = opened(pump).read_all().table
    assert table.column("n").to_pylist() == [1, 2, 3, 4, 5, 6, 7]
    assert ended(pump)


def test_whether_the_statement_has_started_is_that_of_the_source() -> None:
    feed = Feed(0)
    pump = BatchPump(feed, "test")
    assert not pump.has_started
    feed.has_started = True
    assert pump.has_started
    pump.close()
