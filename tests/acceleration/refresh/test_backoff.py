"""The delays before a refresh is retried, and the number of retries."""

import pytest

from caraway_acceleration.refresh.backoff import DELAYS, CopyPauses, Retries
from tests.kit.clocks import Clock


def test_delays_are_near_fibonacci_numbers_up_to_five_minutes() -> None:
    delays = [DELAYS.delay_s(failures) for failures in range(1, 15)]
    assert delays == pytest.approx(
        [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 300, 300], rel=0.18
    )


@pytest.mark.parametrize(
    ("retries", "allowed"),
    [
        (Retries(), [True, True, True]),
        (Retries(max_attempts=2), [True, True, False]),
        (Retries(max_attempts=0), [False, False, False]),
        (Retries(are_enabled=False), [False, False, False]),
        (Retries(are_enabled=False, max_attempts=5), [False, False, False]),
    ],
)
def test_retries_are_bounded(retries: Retries, allowed: list[bool]) -> None:
    assert [retries.allow(attempt) for attempt in (1, 2, 3)] == allowed


@pytest.mark.parametrize(("took_s", "pause_s"), [(0.1, 1.0), (4.0, 4.0), (600.0, 10.0)])
def test_a_pause_is_as_long_as_the_copy_within_bounds(took_s: float, pause_s: float) -> None:
    clock = Clock(100.0)
    pauses = CopyPauses(clock)
    assert pauses.rest_s() == 0.0
    pauses.begin()
    clock.now += took_s
    pauses.end()
    assert pauses.rest_s() == pytest.approx(pause_s)
    clock.now += pause_s / 2
    assert pauses.rest_s() == pytest.approx(pause_s / 2)
    clock.now += pause_s
    assert pauses.rest_s() == 0.0
