"""Slots for tasks: no more at once, in order, given back after every end."""

import asyncio

import pytest

from caraway_core.errors import OverloadedError
from caraway_executor.tasks import places as places_module
from caraway_executor.tasks.places import Places


async def test_no_more_than_the_slots_run_and_all_come_to_their_turn() -> None:
    places, running, most, done = Places(3), 0, 0, []

    async def work(number: int) -> None:
        nonlocal running, most
        async with places.place():
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            done.append(number)

    await asyncio.gather(*(work(number) for number in range(20)))
    assert most == 3 and sorted(done) == list(range(20))


async def test_background_work_takes_no_slot_of_queries() -> None:
    places = Places(1)
    async with places.place(in_background=True), asyncio.timeout(60):
        async with places.place():
            pass


@pytest.mark.parametrize("in_background", [True, False])
async def test_a_slot_that_does_not_come_free_is_an_error_with_advice(in_background: bool) -> None:
    places = Places(1, longest_s=0.01)
    async with places.place(in_background=in_background):
        with pytest.raises(OverloadedError, match=r"busy with other work.*try again") as caught:
            async with places.place(in_background=in_background):
                raise AssertionError("there is no slot")
        assert caught.value.retry_after_s == 10
    async with places.place(in_background=in_background):
        pass


@pytest.mark.parametrize("end", ["cancelled", "failed", "timed out"])
async def test_a_slot_is_given_back_however_its_work_ends(end: str) -> None:
    places = Places(1, longest_s=60)
    begun = asyncio.Event()

    async def work() -> None:
        async with places.place():
            begun.set()
            if end == "failed":
                raise ValueError("failed")
            await asyncio.Event().wait()

    task = asyncio.ensure_future(asyncio.wait_for(work(), 0.01) if end == "timed out" else work())
    await begun.wait()
    if end == "cancelled":
        task.cancel()
    await asyncio.wait((task,))
    async with asyncio.timeout(60), places.place():
        pass


async def test_work_that_is_cancelled_while_it_waits_takes_no_slot() -> None:
    places = Places(1)
    async with places.place():
        waiting = [asyncio.ensure_future(places.place().__aenter__()) for _ in range(5)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
    async with asyncio.timeout(60), places.place():
        pass


async def test_slots_that_were_lent_are_taken_back_as_they_become_free() -> None:
    places = Places(1, longest_s=0.01)
    async with places.place():
        for _ in range(2):
            places.lend(are_lent=True)
            async with places.place():
                with pytest.raises(OverloadedError):
                    async with places.place():
                        raise AssertionError("there is no slot")
                places.lend(are_lent=False)
        with pytest.raises(OverloadedError):
            async with places.place():
                raise AssertionError("the slot was taken back")
    async with places.place():
        pass


async def test_a_task_leaves_when_others_keep_the_slots_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(places_module, "_LONG_S", 0.01)
    monkeypatch.setattr(places_module, "_MOST_ELSEWHERE", 1)
    places = Places(1, longest_s=0.05)
    async with places.place() as is_here:
        assert is_here
        async with places.place(may_leave=True) as is_here:
            assert not is_here
            # There is no more room elsewhere.
            with pytest.raises(OverloadedError):
                async with places.place(may_leave=True):
                    raise AssertionError("there is no slot")
    async with places.place(may_leave=True) as is_here:
        assert is_here
