"""The samples of the last hour."""

from caraway_scheduler.history.recent import EVERY_S, RecentSamples, Sample


def test_counters_become_what_was_added_and_gauges_stay() -> None:
    samples = RecentSamples()
    for at, count in ((1, 10), (2, 25), (3, 25), (4, 3)):
        samples.add(Sample(at, {"statements": count}, {"running": at}))
    assert samples.columns() == {
        "at_ms": [2, 3, 4],
        # A counter that begins again has added nothing that is known.
        "statements": [15, 0, 0],
        "running": [2, 3, 4],
    }


def test_what_is_not_in_a_sample_is_missing_in_its_place() -> None:
    samples = RecentSamples()
    samples.add(Sample(0))
    samples.add(Sample(1, {"a": 1}))
    samples.add(Sample(2, {}, {"b": 2}))
    assert samples.columns() == {"at_ms": [1, 2], "a": [1, None], "b": [None, 2]}


def test_an_hour_is_kept() -> None:
    samples = RecentSamples()
    for at in range(1_000):
        samples.add(Sample(at, {"a": at}))
    kept = samples.columns()["at_ms"]
    assert len(kept) * EVERY_S == 3_600 and kept[-1] == 999
    assert RecentSamples().columns() == {"at_ms": []}
