"""Where copies are, as a function of the executors."""

import pytest

from caraway_assist.hosting.placing import Candidate, CopyNeeds, chosen, lacking
from caraway_core.ids import ExecutorId

E1, E2, E3 = (ExecutorId(f"e{number}") for number in (1, 2, 3))
EXECUTORS = [Candidate(each, cores=4, memory_bytes=2**30) for each in (E1, E2, E3)]


def test_each_executor_has_at_most_one_copy() -> None:
    assert len(chosen(CopyNeeds("m", copies=2), EXECUTORS, (), (), {})) == 2
    assert set(chosen(CopyNeeds("m", copies=9), EXECUTORS, (), (), {})) == {E1, E2, E3}


def test_copies_stay_and_copies_of_other_schedulers_are_shared() -> None:
    for held in (E1, E2, E3):
        assert chosen(CopyNeeds("m"), EXECUTORS, (held,), (), {held: 5}) == [held]
        others = [
            Candidate(
                each.executor_id, 4, 2**30, 0, frozenset({"m"} if each.executor_id == held else ())
            )
            for each in EXECUTORS
        ]
        assert chosen(CopyNeeds("m"), others, (), (), {}) == [held]


def test_executors_with_fewer_models_come_first_and_the_order_is_the_same_everywhere() -> None:
    assert chosen(CopyNeeds("m"), EXECUTORS, (), (), {E1: 1, E3: 2}) == [E2]
    assert chosen(CopyNeeds("m"), EXECUTORS, (), (), {}) == chosen(
        CopyNeeds("m"), EXECUTORS[::-1], (), (), {}
    )
    first = {chosen(CopyNeeds(f"m{number}"), EXECUTORS, (), (), {})[0] for number in range(40)}
    assert first == {E1, E2, E3}


@pytest.mark.parametrize("need", [CopyNeeds("m", cores=5), CopyNeeds("m", memory_bytes=2**31),
                                  CopyNeeds("m", gpus=1)])  # fmt: skip
def test_executors_that_are_too_small_are_not_asked(need: CopyNeeds) -> None:
    assert chosen(need, EXECUTORS, (), (), {}) == []
    assert "no executor is large enough" in lacking(need, EXECUTORS, {})
    large = Candidate(ExecutorId("large"), 8, 2**32, 1)
    assert chosen(need, [*EXECUTORS, large], (), (), {}) == ["large"]


def test_executors_that_refused_are_left_out_and_the_reason_is_told() -> None:
    assert chosen(CopyNeeds("m"), EXECUTORS, (), (E1, E3), {}) == [E2]
    assert lacking(CopyNeeds("m"), EXECUTORS, {E1: "2 cores are needed"}) == "2 cores are needed"
    assert lacking(CopyNeeds("m"), [], {}) == "no executor is ready"
