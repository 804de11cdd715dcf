"""Slots of a query: each is on a present executor, while executors come and go."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import OverloadedError
from caraway_core.ids import ExecutorId
from caraway_core.protocols.fleet import ExchangePart
from caraway_scheduler.dispatch.tasks.placing import Slots, none_ready

A, B, C, D = (ExecutorId(name) for name in "abcd")


def part(executor_id: ExecutorId, size_bytes: int) -> ExchangePart:
    return ExchangePart(None, executor_id, 1, size_bytes)


def test_tasks_beyond_the_slots_go_round() -> None:
    slots = Slots(lambda: [A, B], [A, B, A])
    assert len(slots) == 3
    assert [slots.executor(number) for number in range(7)] == [A, B, A, A, B, A, A]


def test_executor_that_went_before_the_query_began_has_no_slot() -> None:
    slots = Slots(lambda: [A, B], [A, C, B])
    assert {slots.executor(number) for number in range(3)} == {A, B}


def test_lost_slots_are_spread_evenly() -> None:
    ready = [A, B, C]
    slots = Slots(lambda: ready, [A, A, A, A, B, C])
    slots.lose(A)
    counts = Counter(slots.executor(number) for number in range(6))
    assert counts == {B: 3, C: 3}


def test_lost_executor_that_came_back_is_the_last_choice_but_one() -> None:
    ready = [A, B]
    slots = Slots(lambda: ready, [A, B])
    slots.lose(A)
    slots.lose(B)
    assert [slots.executor(0), slots.executor(1)] == [A, A], "not the one that was lost just now"
    ready[:] = [A]
    slots.lose(A)
    assert slots.executor(0) == A, "it alone is there"


def test_nobody_left_is_an_overload_that_says_when_to_come_back() -> None:
    ready = [A]
    slots = Slots(lambda: ready, [A])
    ready.clear()
    with pytest.raises(OverloadedError, match="cluster/executors") as raised:
        slots.lose(A)
    assert raised.value.retry_after_s == none_ready().retry_after_s > 0
    with pytest.raises(OverloadedError):
        Slots(lambda: [], [A])


def test_most_bytes_decide_where_a_task_is_nearest() -> None:
    slots = Slots(lambda: [A, B, C], [A, B, C])
    assert slots.nearest([part(A, 5), part(B, 3), part(B, 3)]) == B
    assert slots.nearest([part(C, 0)]) == C, "also an empty part has a place"
    assert slots.nearest([]) == slots.nearest([part(D, 100)]) == A


def test_executor_that_leaves_gives_its_slots_away_while_there_are_others() -> None:
    leaving: set[ExecutorId] = set()
    ready = [A, B]
    slots = Slots(lambda: ready, [A, B], leaving.__contains__)
    leaving.add(A)
    assert [slots.executor(0), slots.executor(1)] == [B, B]
    leaving.add(B)
    assert slots.executor(0) == B, "it is better than none"
    assert slots.nearest([part(A, 10**9), part(B, 1)]) == B


STEPS = st.lists(
    st.tuples(st.sampled_from(["lose", "back", "leave", "ask"]), st.sampled_from([A, B, C, D])),
    max_size=30,
)


@settings(max_examples=150, derandomize=True)
@given(STEPS, st.lists(st.sampled_from([A, B, C, D]), min_size=1, max_size=6))
def test_slots_are_on_executors_that_were_ready_when_they_were_given(
    steps: list[tuple[str, ExecutorId]], planned: list[ExecutorId]
) -> None:
    ready, leaving = [A, B, C, D], set[ExecutorId]()
    slots = Slots(lambda: list(ready), planned, leaving.__contains__)
    for step, who in steps:
        try:
            if step == "lose":
                ready = [each for each in ready if each != who]
                slots.lose(who)
            elif step == "back" and who not in ready:
                ready.append(who)
            elif step == "leave":
                leaving.add(who)
            placed = [slots.executor(number) for number in range(len(slots))]
        except OverloadedError:
            assert not ready
            return
        assert len(slots) == len(planned)
        assert step != "lose" or who not in placed
        assert not leaving.intersection(placed) or leaving.issuperset(ready) or slots._lost
