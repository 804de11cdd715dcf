from hypothesis import given
from hypothesis import strategies as st

from caraway_operator.scaling.autoscaling import (
    AutoscalingBounds,
    AutoscalingDecision,
    LoadHistory,
    LoadSample,
    decide_replicas,
    sample_load,
)
from caraway_operator.scheduler_client import MemoryUsage, SchedulerLoad

BOUNDS = AutoscalingBounds(
    least=1, most=10, queued_per_executor=4, up_window_s=30, down_window_s=300
)


def asked(*loads: SchedulerLoad, current: int = 2, bounds: AutoscalingBounds = BOUNDS) -> int:
    return sample_load(loads, current, bounds, 0.0).desired


def steady(number: int, since: float, until: float) -> list[LoadSample]:
    return [LoadSample(float(at), number, "why") for at in range(int(since), int(until) + 1, 10)]


def test_queued_statements_at_most_double_the_executors() -> None:
    assert asked(SchedulerLoad(queued=3, running=2)) == 2
    assert asked(SchedulerLoad(queued=4, running=2)) == 3
    assert asked(SchedulerLoad(queued=100, running=2)) == 4


def test_the_queues_of_all_schedulers_count() -> None:
    assert asked(SchedulerLoad(queued=2, running=1), SchedulerLoad(queued=2, running=1)) == 3


def test_used_memory_calls_for_more_executors() -> None:
    full = SchedulerLoad(queued=0, running=2, memory=(MemoryUsage(95, 100), MemoryUsage(90, 100)))

    assert asked(full) == 3


def test_idle_executors_are_reduced_by_one() -> None:
    assert asked(SchedulerLoad(queued=0, running=0), current=5) == 4
    assert asked(SchedulerLoad(queued=0, running=5), current=5) == 5


def test_idle_executors_with_used_memory_are_kept() -> None:
    held = SchedulerLoad(queued=0, running=0, memory=(MemoryUsage(80, 100),) * 5)

    assert asked(held, current=5) == 5


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 50))
def test_the_desired_number_is_within_the_bounds(queued: int, running: int, current: int) -> None:
    assert 1 <= asked(SchedulerLoad(queued, running), current=current) <= 10


def test_a_lasting_load_adds_executors() -> None:
    assert decide_replicas(steady(4, 0, 30), 2, BOUNDS, 30.0) == AutoscalingDecision(4, "why")


def test_a_short_load_adds_no_executors() -> None:
    samples = [*steady(2, 0, 10), *steady(4, 20, 30)]

    assert decide_replicas(samples, 2, BOUNDS, 30.0) == AutoscalingDecision(2)


def test_the_lowest_desired_number_of_the_window_is_used() -> None:
    samples = [*steady(3, 0, 10), *steady(9, 20, 30)]

    assert decide_replicas(samples, 2, BOUNDS, 30.0).replicas == 3


def test_nothing_changes_before_a_window_is_full() -> None:
    assert decide_replicas(steady(4, 10, 30), 2, BOUNDS, 30.0) == AutoscalingDecision(2)
    assert decide_replicas(steady(1, 10, 300), 2, BOUNDS, 300.0) == AutoscalingDecision(2)


def test_executors_are_removed_after_the_longer_window() -> None:
    samples = steady(1, 0, 300)

    assert decide_replicas(samples, 2, BOUNDS, 300.0) == AutoscalingDecision(1, "why")


def test_one_busy_moment_keeps_the_executors() -> None:
    samples = [*steady(1, 0, 140), LoadSample(150.0, 3, "busy"), *steady(1, 160, 300)]

    assert decide_replicas(samples, 2, BOUNDS, 300.0) == AutoscalingDecision(2)


def test_changed_bounds_apply_at_once() -> None:
    assert decide_replicas([], 0, BOUNDS, 0.0).replicas == 1
    assert decide_replicas([], 20, BOUNDS, 0.0).replicas == 10


def test_history_keeps_only_the_samples_of_the_window() -> None:
    history = LoadHistory()
    for at in range(0, 1000, 10):
        history.add(LoadSample(float(at), 1, ""), 300)

    assert history.samples[0].at == 690.0
    assert len(history.samples) == 31
    history.clear()
    assert not history.samples
