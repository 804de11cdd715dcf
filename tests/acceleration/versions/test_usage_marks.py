"""UsageMarks of datasets: all schedulers renew them, and only marks without renewal are removed."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_acceleration.versions.usage_marks import UsageMarks
from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from tests.kit.interleaving import SteppedLoop, SteppedStore, run

NAMES = ["t", "public.t", "a/b", "ü", "a b", "100%", "%2F", "?", "s.t.u"]
START = datetime(2026, 1, 1, tzinfo=UTC)


def play(
    work: Callable[[SteppedStore, Callable[[], datetime]], Coroutine[Any, Any, None]],
    choose: Callable[[int], int] = lambda _: 0,
) -> None:
    async def with_store(loop: SteppedLoop) -> None:
        store = SteppedStore(loop)
        await work(store, lambda: START + timedelta(seconds=loop.time()))
        store.close()

    run(with_store, choose, steps_take_time=False)


def test_names_of_any_letters_are_read_back() -> None:
    async def work(store: SteppedStore, clock: Callable[[], datetime]) -> None:
        marks = UsageMarks(store, clock)
        for name in map(TableName, NAMES):
            assert await marks.renew(name) is None
        assert await marks.names() == set(NAMES)
        for name in map(TableName, NAMES):
            mark = await marks.read(name)
            assert mark is not None and await marks.remove(name, mark)
        assert await marks.names() == set()

    play(work)


def test_renewal_says_when_it_was_kept_before() -> None:
    async def work(store: SteppedStore, clock: Callable[[], datetime]) -> None:
        marks, name = UsageMarks(store, clock), TableName("t")
        first = clock()
        await marks.renew(name)
        await asyncio.sleep(100)
        assert await marks.renew(name) == first
        mark = await marks.read(name)
        assert mark is not None and mark.at >= first + timedelta(seconds=100)

    play(work)


def test_dataset_that_is_kept_again_is_not_forgotten() -> None:
    async def work(store: SteppedStore, clock: Callable[[], datetime]) -> None:
        marks, name = UsageMarks(store, clock), TableName("t")
        await marks.renew(name)
        stale = await marks.read(name)
        assert stale is not None
        await marks.renew(name)
        assert not await marks.remove(name, stale)
        assert await marks.names() == {"t"}

    play(work)


@settings(max_examples=25, derandomize=True)
@given(st.lists(st.integers(0, 4), max_size=80))
def test_of_removal_and_renewal_at_once_the_mark_survives_if_the_renewal_was_last(
    choices: list[int],
) -> None:
    async def work(store: SteppedStore, clock: Callable[[], datetime]) -> None:
        one, two, name = UsageMarks(store, clock), UsageMarks(store, clock), TableName("t")
        await one.renew(name)
        mark = await one.read(name)
        assert mark is not None
        removed, before, _ = await asyncio.gather(
            one.remove(name, mark), two.renew(name), one.renew(name)
        )
        assert await one.read(name) is not None, "each renewal writes after what it read"
        assert before is None or before <= clock()
        assert removed in (True, False)

    numbers = iter(choices)
    play(work, lambda count: min(next(numbers, 0), count - 1))


@pytest.mark.parametrize("value", [b"soon", b"\xff", b"2026-13-01", b"0"])
def test_damaged_mark_is_told_with_its_dataset(value: bytes) -> None:
    async def work(store: SteppedStore, clock: Callable[[], datetime]) -> None:
        await store.compare_and_set("accelerated-kept/t", value, expected=None)
        with pytest.raises(CarawayError, match="'t'"):
            await UsageMarks(store, clock).read(TableName("t"))

    play(work)
