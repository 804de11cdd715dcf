"""The delays before a refresh is retried, and the number of retries."""

import pytest

from caraway_acceleration.refresh.backoff import DELAYS, Retries


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
