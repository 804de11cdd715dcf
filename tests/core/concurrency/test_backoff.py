"""Waits grow up to a limit, after any number of failures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.concurrency.backoff import USUAL, Backoff, Cooldown, Delays
from tests.kit.clocks import Clock

MANY = 10**400
CHANCES = st.floats(0, 1, exclude_max=True)


def test_waits_double_from_the_first_to_the_longest() -> None:
    delays = Delays(0.5, 3.0)
    assert [delays.delay_s(failures) for failures in range(1, 6)] == [0.5, 1, 2, 3, 3]


def test_a_factor_of_one_keeps_the_wait_as_it_is() -> None:
    assert Delays(2.0, 60.0, factor=1.0).delay_s(MANY) == 2


@given(st.integers(0, MANY), CHANCES)
def test_a_wait_is_within_its_bounds(failures: int, chance: float) -> None:
    """2.0 ** 1024 raised OverflowError, which ended the loop."""
    assert 1 <= USUAL.delay_s(failures, chance) <= 72
    assert USUAL.delay_s(failures, chance) <= USUAL.delay_s(failures + 1, chance)


@pytest.mark.parametrize("failures", [0, 1])
def test_no_failure_waits_as_the_first(failures: int) -> None:
    assert USUAL.delay_s(failures) == 1


def test_a_success_begins_with_the_first_wait_again() -> None:
    backoff = Backoff(Delays(1.0, 8.0, jitter=1.0), chance=lambda: 0.5)
    assert [backoff.failed() for _ in range(5)] == [1.5, 3, 6, 12, 12]
    assert backoff.failures == 5
    backoff.succeeded()
    assert backoff.failed() == 1.5


def test_a_cooldown_lets_one_try_follow_a_failure_at_once_and_then_holds() -> None:
    clock = Clock(10.0)
    cooldown = Cooldown(Delays(1.0, 3.0), clock)
    cooldown.failed()
    assert cooldown.left_s == 0
    for left_s in (1, 2, 3, 3):
        cooldown.failed()
        assert cooldown.left_s == left_s
    clock.now += 2
    assert cooldown.left_s == 1
    clock.now += 5
    assert cooldown.left_s == 0
    cooldown.failed()
    cooldown.succeeded()
    assert cooldown.left_s == 0
    cooldown.failed()
    assert cooldown.left_s == 0
