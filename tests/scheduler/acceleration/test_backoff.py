"""How long to wait before a refresh is tried again, and how often."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_scheduler.acceleration import backoff
from caraway_scheduler.acceleration.backoff import Retries


def test_delays_are_fibonacci_numbers_up_to_five_minutes() -> None:
    delays = [backoff.delay_s(failures, 0) for failures in range(1, 15)]
    assert delays == [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 300, 300]


@given(st.integers(0, 10**18), st.floats(0, 1, exclude_max=True))
def test_delays_are_bounded_and_never_shrink(failures: int, chance: float) -> None:
    assert 1 <= backoff.delay_s(failures, chance) <= 360
    assert backoff.delay_s(failures, chance) <= backoff.delay_s(failures + 1, chance)


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
def test_so_many_tries_follow_the_first(retries: Retries, allowed: list[bool]) -> None:
    assert [retries.allow(attempt) for attempt in (1, 2, 3)] == allowed
