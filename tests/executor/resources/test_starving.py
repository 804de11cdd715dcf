"""Work leaves the threads of an executor when a probe has no answer although they compute."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from caraway_executor.resources import starving
from caraway_executor.resources.starving import LeftError, OwnThreads, Stay
from tests.kit.deadlines import eventually


class _Threads:
    """Threads that take no work until they are `free`, and the notes about them."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.is_busy = False
        self.looks = 0
        self.states: list[bool] = []
        self.own = OwnThreads(self)

    async def probe(self) -> None:
        await self.free.wait()

    def look(self) -> int:
        self.looks += 1
        return self.looks

    async def were_starved(self) -> bool:
        return self.states == [True, False]

    async def were_looked_at(self) -> bool:
        return self.looks > 5

    def note_starved(self, *, are_starved: bool) -> None:
        self.states.append(are_starved)

    def note_busy(self) -> None:
        self.is_busy = True


@asynccontextmanager
async def threads(monkeypatch: pytest.MonkeyPatch, used_s: float) -> AsyncIterator[_Threads]:
    """Make threads that use `used_s` seconds of a processor between two looks."""
    made = _Threads()
    monkeypatch.setattr(starving, "used_s", lambda _pid: made.look() * used_s)
    for name in ("_LOOK_S", "PROBE_AFTER_S", "STARVED_S"):
        monkeypatch.setattr(starving, name, 0.01)
    try:
        yield made
    finally:
        made.own.close()


async def waited(stay: Stay) -> str:
    try:
        with stay.waiting():
            await asyncio.Event().wait()
    except LeftError as left:
        return "suspect" if left.is_suspect else "later"
    raise AssertionError("it waits for ever")


async def test_what_began_before_is_a_suspect_and_what_comes_later_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with threads(monkeypatch, 1.0) as made:
        assert await waited(Stay(made.own)) == "suspect"
        assert made.is_busy and made.own.are_starved and made.states == [True]
        assert await waited(Stay(made.own)) == "later"
        made.free.set()
        await eventually(made.were_starved, "the threads are free")
        with Stay(made.own).waiting():
            pass


async def test_threads_without_a_processor_are_not_starved(monkeypatch: pytest.MonkeyPatch) -> None:
    async with threads(monkeypatch, 0.0) as made:
        staying = asyncio.create_task(waited(Stay(made.own)))
        await eventually(made.were_looked_at, "several looks")
        assert not staying.done() and not made.states
        staying.cancel()
        await asyncio.wait((staying,))
        assert staying.cancelled()


async def test_what_must_stay_and_what_is_cancelled_does_not_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with threads(monkeypatch, 1.0) as made:
        stay, other = Stay(made.own), Stay(made.own)
        stay.can_leave = False
        staying = asyncio.create_task(waited(stay))
        await waited(other)
        assert not staying.done()
        staying.cancel()
        await asyncio.wait((staying,))
        assert staying.cancelled()


async def test_work_that_is_cancelled_while_it_leaves_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with threads(monkeypatch, 1.0) as made:
        stay = Stay(made.own)
        staying = asyncio.create_task(waited(stay))
        await asyncio.sleep(0)
        stay.leave(is_suspect=True)
        staying.cancel()
        await asyncio.wait((staying,))
        assert staying.cancelled()
