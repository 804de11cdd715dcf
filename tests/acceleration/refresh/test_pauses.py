"""Copies take at most half of the time."""

import pytest

from caraway_acceleration.refresh.pauses import CopyPauses
from tests.kit.clocks import Clock


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
