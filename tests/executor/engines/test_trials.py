"""Suspects run alone, each in a seat of its own, and give it back."""

import asyncio
from typing import Any, cast

import pytest

from caraway_core.errors import OverloadedError
from caraway_executor.engines import trials
from caraway_executor.engines.seats import Seat
from caraway_executor.engines.trials import LongPlanning, Trials


def _trials(count: int) -> Trials:
    return Trials(cast(list[Seat], [f"seat {n}" for n in range(count)]))


async def test_nobody_shares_a_seat() -> None:
    free = _trials(2)
    (one, leave_one), (other, leave_other) = await free.await_seat(), await free.await_seat()
    assert one is not other
    waiting = asyncio.create_task(free.await_seat())
    await asyncio.sleep(0)
    assert not waiting.done()
    leave_one()
    leave_one()  # A seat is given back once.
    third, leave_third = await waiting
    assert third is one
    more = asyncio.create_task(free.await_seat())
    await asyncio.sleep(0)
    assert not more.done()
    leave_other()
    assert (await more)[0] is other
    leave_third()
    (await more)[1]()


async def test_a_seat_is_free_again_after_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_TURN_S", 0.0)
    free = _trials(1)
    seat, leave = await free.await_seat()
    again, leave_again = await free.await_seat()
    assert again is seat
    leave()  # Its turn is over; the seat belongs to somebody else.
    monkeypatch.setattr(trials, "_LONGEST_WAIT_S", 0.0)
    leave_again()
    assert (await free.await_seat())[0] is seat


async def test_who_waits_too_long_is_told_to_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    free = _trials(1)
    seat, leave = await free.await_seat()
    monkeypatch.setattr(trials, "_LONGEST_WAIT_S", 0.0)
    with pytest.raises(OverloadedError, match="try again later") as caught:
        await free.await_seat()
    assert caught.value.retry_after_s
    leave()
    assert (await free.await_seat())[0] is seat


async def test_a_waiter_that_goes_away_leaves_its_place() -> None:
    free = _trials(1)
    _, leave = await free.await_seat()
    waiting = [asyncio.create_task(free.await_seat()) for _ in range(3)]
    await asyncio.sleep(0)
    for each in waiting[:2]:
        each.cancel()
    leave()
    await asyncio.wait(waiting)
    assert [each.cancelled() for each in waiting] == [True, True, False]


def test_only_what_took_long_last_time_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    known: Any = LongPlanning()
    known.took("a", 0.1)
    known.took("b", 5.0)
    assert "a" not in known and "b" in known
    known.took("b", 0.1)
    assert "b" not in known
    monkeypatch.setattr(trials, "_MOST_LONG", 2)
    for key in "cdce":
        known.took(key, 1.0)
    assert [key in known for key in "cde"] == [True, False, True]
