from hypothesis import given
from hypothesis import strategies as st

from caraway_operator.scaling.autoscaling import Bounds, Decision, History, Sample, decide, sample
from caraway_operator.scheduler_link import Load, Usage

BOUNDS = Bounds(least=1, most=10, queued_per_executor=4, up_window_s=30, down_window_s=300)


def asked(*loads: Load, current: int = 2, bounds: Bounds = BOUNDS) -> int:
    return sample(loads, current, bounds, 0.0).asked


def steady(number: int, since: float, until: float) -> list[Sample]:
    return [Sample(float(at), number, "why") for at in range(int(since), int(until) + 1, 10)]


def test_statements_that_wait_ask_for_more_but_for_no_more_than_twice_as_many() -> None:
    assert asked(Load(queued=3, running=2)) == 2
    assert asked(Load(queued=4, running=2)) == 3
    assert asked(Load(queued=100, running=2)) == 4


def test_the_queues_of_all_schedulers_count() -> None:
    assert asked(Load(queued=2, running=1), Load(queued=2, running=1)) == 3


def test_memory_in_use_asks_for_more() -> None:
    full = Load(queued=0, running=2, memory=(Usage(95, 100), Usage(90, 100)))

    assert asked(full) == 3


def test_idle_executors_are_asked_for_one_less() -> None:
    assert asked(Load(queued=0, running=0), current=5) == 4
    assert asked(Load(queued=0, running=5), current=5) == 5


def test_idle_executors_whose_memory_is_in_use_stay() -> None:
    held = Load(queued=0, running=0, memory=(Usage(80, 100),) * 5)

    assert asked(held, current=5) == 5


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 50))
def test_nothing_is_asked_for_beyond_the_bounds(queued: int, running: int, current: int) -> None:
    assert 1 <= asked(Load(queued, running), current=current) <= 10


def test_a_need_that_lasts_adds_executors() -> None:
    assert decide(steady(4, 0, 30), 2, BOUNDS, 30.0) == Decision(4, "why")


def test_a_need_that_did_not_last_adds_none() -> None:
    samples = [*steady(2, 0, 10), *steady(4, 20, 30)]

    assert decide(samples, 2, BOUNDS, 30.0) == Decision(2)


def test_the_least_that_was_asked_for_all_the_time_is_what_is_added() -> None:
    samples = [*steady(3, 0, 10), *steady(9, 20, 30)]

    assert decide(samples, 2, BOUNDS, 30.0).replicas == 3


def test_nothing_is_decided_before_a_window_is_full() -> None:
    assert decide(steady(4, 10, 30), 2, BOUNDS, 30.0) == Decision(2)
    assert decide(steady(1, 10, 300), 2, BOUNDS, 300.0) == Decision(2)


def test_executors_go_after_the_longer_window() -> None:
    samples = steady(1, 0, 300)

    assert decide(samples, 2, BOUNDS, 300.0) == Decision(1, "why")


def test_one_busy_moment_keeps_the_executors() -> None:
    samples = [*steady(1, 0, 140), Sample(150.0, 3, "busy"), *steady(1, 160, 300)]

    assert decide(samples, 2, BOUNDS, 300.0) == Decision(2)


def test_bounds_that_changed_are_met_at_once() -> None:
    assert decide([], 0, BOUNDS, 0.0).replicas == 1
    assert decide([], 20, BOUNDS, 0.0).replicas == 10


def test_history_keeps_what_the_window_needs_and_no_more() -> None:
    history = History()
    for at in range(0, 1000, 10):
        history.add(Sample(float(at), 1, ""), 300)

    assert history.samples[0].at == 690.0
    assert len(history.samples) == 31
    history.clear()
    assert not history.samples
