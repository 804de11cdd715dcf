"""Histograms count each duration once, in the bucket that Prometheus expects."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.process.durations import Durations


@given(st.lists(st.floats(0, 1e7), max_size=30))
def test_cumulative_counts(times_ms: list[float]) -> None:
    durations = Durations()
    for each in times_ms:
        durations.add(("a",), each)
    # Executors send them to the process that serves their metrics.
    found = pickle.loads(pickle.dumps(durations)).cumulative(("a",))
    assert found[-1] == ("+Inf", len(times_ms))
    for bound, count in found:
        assert count == sum(each <= float(bound) for each in times_ms)
    assert durations.sums_ms[("a",)] == pytest.approx(sum(times_ms))
    assert [float(bound) for bound, _ in found] == sorted(float(bound) for bound, _ in found)


def test_labels_are_kept_apart() -> None:
    durations = Durations()
    durations.add(("a",), 1)
    durations.add(("b",), 2)
    assert durations.cumulative(("a",))[0] == ("1.0", 1)
    assert durations.cumulative(("b",))[0] == ("1.0", 0)
    assert durations.cumulative(("c",))[-1] == ("+Inf", 0)
