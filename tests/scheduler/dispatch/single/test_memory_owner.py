"""Every scheduler finds the same owner of the tables in memory, until it is gone."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import CarawayError, OverloadedError
from caraway_core.ids import ExecutorId
from caraway_scheduler.dispatch.single.memory_owner import KEY, MemoryOwner
from tests.kit.interleaving import SteppedLoop, SteppedStore, run

EXECUTORS = [ExecutorId(f"e{number}") for number in range(5)]


@settings(max_examples=50, derandomize=True)
@given(
    st.lists(st.integers(0, 5), max_size=60),
    st.lists(st.sets(st.sampled_from(EXECUTORS), min_size=1), min_size=1, max_size=5),
)
def test_schedulers_that_see_the_same_executors_find_the_same_owner(
    choices: list[int], rounds: list[set[ExecutorId]]
) -> None:
    async def work(loop: SteppedLoop) -> None:
        store = SteppedStore(loop)
        before: ExecutorId | None = None
        for ready in rounds:
            finds = [MemoryOwner(store).find(lambda r=ready: sorted(r)) for _ in range(3)]  # type: ignore[misc]
            owners = {await each for each in finds}
            assert len(owners) == 1
            (owner,) = owners
            assert owner in ready
            assert before not in ready or owner == before, "it stays while it is there"
            before = owner
        store.close()

    numbers = iter(choices)
    run(work, lambda count: min(next(numbers, 0), count - 1), steps_take_time=False)


def test_choice_does_not_depend_on_the_order_in_which_executors_are_seen() -> None:
    async def work(loop: SteppedLoop) -> None:
        found = set()
        for order in (EXECUTORS, EXECUTORS[::-1]):
            store = SteppedStore(loop)
            found.add(await MemoryOwner(store).find(lambda o=order: o))  # type: ignore[misc]
            entry = store.peek(KEY)
            assert entry is not None and entry.value.decode() in found
            store.close()
        assert len(found) == 1

    run(work, lambda _: 0, steps_take_time=False)


def test_without_executors_nothing_is_chosen() -> None:
    async def work(loop: SteppedLoop) -> None:
        store = SteppedStore(loop)
        with pytest.raises(OverloadedError):
            await MemoryOwner(store).find(list)
        assert store.peek(KEY) is None
        store.close()

    run(work, lambda _: 0, steps_take_time=False)


def test_owner_that_changes_all_the_time_is_an_error_and_no_endless_loop() -> None:
    async def work(loop: SteppedLoop) -> None:
        class Restless(SteppedStore):
            async def compare_and_set(self, *_: object, **__: object) -> int | None:
                return None

        asked: list[int] = []

        def ready() -> Sequence[ExecutorId]:
            asked.append(1)
            return EXECUTORS

        store = Restless(loop)
        with pytest.raises(CarawayError, match="changed"):
            await MemoryOwner(store).find(ready)
        assert 1 < len(asked) < 100
        store.close()

    run(work, lambda _: 0, steps_take_time=False)
