"""The memory of tasks: never more than the limit, and all of it given back."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import OutOfMemoryQueryError
from caraway_executor.resources.room import TaskMemory


@given(st.lists(st.integers(-60, 60)), st.none() | st.integers(0, 100))
def test_what_is_taken_never_exceeds_the_limit(steps: list[int], limit: int | None) -> None:
    room = TaskMemory(limit)
    held = 0
    for step in steps:
        if step >= 0:
            fits = limit is None or held + step <= limit
            assert room.has(step) is fits
            assert room.take_bytes(step) is fits
            held += step if fits else 0
        elif held >= -step:
            room.give(-step)
            held += step
        assert room.taken_bytes == held


def test_what_is_only_cached_is_freed_before_a_task_fails() -> None:
    room = TaskMemory(100)
    assert room.take_bytes(80)
    freed: list[int] = []

    def reclaim() -> None:
        freed.append(1)
        # Finalizers give bytes back while the room is asked.
        room.give(50)

    room.reclaim = reclaim
    assert room.take_bytes(20) and freed == []
    assert room.take_bytes(30) and freed == [1]
    room.reclaim = lambda: None
    assert not room.take_bytes(30) and room.taken_bytes == 80


def test_a_task_gives_back_all_that_it_took_also_after_an_error() -> None:
    room = TaskMemory(100)
    with room.place() as one, room.place() as other:
        one.take_bytes(60)
        other.take_bytes(40)
        with pytest.raises(OutOfMemoryQueryError, match="exceed 0 MiB"):
            other.take_bytes(1)
        assert (one.taken_bytes, other.taken_bytes) == (60, 40)
    assert room.taken_bytes == 0
    with pytest.raises(ZeroDivisionError), room.place() as place:
        place.take_bytes(100)
        raise ZeroDivisionError
    assert room.take_bytes(100)


def test_threads_do_not_lose_bytes() -> None:
    room = TaskMemory(1_000)

    def work() -> None:
        for _ in range(500):
            if room.take_bytes(7):
                room.give(7)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert room.taken_bytes == 0
