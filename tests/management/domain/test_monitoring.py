from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from caraway_management.domain import monitoring
from caraway_management.domain.monitoring import Event, Measured, Sample, Standing, State
from caraway_management.domain.monitors import Spec

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
Values = Mapping[str, Any]


def _at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def _states(spec: Spec, *values: float | None) -> list[tuple[str, str | None]]:
    """Judge a value each minute, and return the states with their events."""
    standing, found = Standing(), []
    for minute, value in enumerate(values):
        measured = Measured(value, None if value is not None else "gone")
        verdict = monitoring.judge(standing, spec, measured, _at(60 * minute))
        standing = verdict.standing
        found.append((standing.state.value, verdict.event.value if verdict.event else None))
    return found


def test_a_condition_must_hold_until_it_fires() -> None:
    spec = Spec("GT", 5, sustain_s=120)
    assert _states(spec, 1, 6, 6, 6, 6) == [
        ("ok", None),
        ("pending", None),
        ("pending", None),
        ("firing", Event.FIRED),
        ("firing", None),
    ]


def test_an_interruption_begins_the_time_again() -> None:
    spec = Spec("GT", 5, sustain_s=120)
    states = [state for state, _ in _states(spec, 6, 6, 5, 6, 6, 6)]
    assert states == ["pending", "pending", "ok", "pending", "pending", "firing"]


def test_without_a_time_it_fires_at_once() -> None:
    assert _states(Spec("GT", 0, sustain_s=0), 1)[0] == ("firing", Event.FIRED)


def test_it_resolves_when_the_condition_has_not_held_twice() -> None:
    spec = Spec("GT", 5, sustain_s=0)
    assert _states(spec, 6, 5, 6, 5, 5, 5) == [
        ("firing", Event.FIRED),
        ("firing", None),
        ("firing", None),
        ("firing", None),
        ("ok", Event.RESOLVED),
        ("ok", None),
    ]


def test_two_judgements_within_a_minute_do_not_resolve() -> None:
    """Two instances may judge shortly after one another."""
    spec, calm = Spec("GT", 5, sustain_s=0), Measured(0.0)
    first = monitoring.judge(Standing(State.FIRING, NOW), spec, calm, NOW)
    soon = monitoring.judge(first.standing, spec, calm, NOW + timedelta(seconds=59))
    assert (soon.standing.state, soon.event) == (State.FIRING, None)


def test_missing_data_neither_fires_nor_resolves() -> None:
    spec = Spec("GT", 5, sustain_s=60)
    assert [state for state, _ in _states(spec, 6, None, 6, 6)] == [
        "pending", "ok", "pending", "firing",
    ]  # fmt: skip
    firing = Spec("GT", 5, sustain_s=0)
    assert _states(firing, 6, 5, None, None, 5, 5)[1:] == [
        ("firing", None),
        ("firing", None),
        ("firing", None),
        ("firing", None),
        ("ok", Event.RESOLVED),
    ]


@pytest.mark.parametrize(
    ("op", "met", "unmet"),
    [
        ("GT", 6, 5), ("GEQ", 5, 4.9), ("LT", 4, 5), ("LEQ", 5, 5.1), ("EQ", 5, 4), ("NEQ", 4, 5),
    ],
)  # fmt: skip
def test_ops(op: Any, met: float, unmet: float) -> None:
    spec = Spec(op, 5)
    assert spec.holds(met)
    assert not spec.holds(unmet)


def _samples(*values: Values, every_s: int = 30) -> list[Sample]:
    """Return samples of which the last is of now."""
    last = len(values) - 1
    base = {"instances": 1, "instances_ready": 1, "queries": 0}
    return [Sample(_at(every_s * (at - last)), {**base, **each}) for at, each in enumerate(values)]


def _value(template: str, found: list[Sample], **spec: Any) -> float | None:
    given = {"op": "GT", "threshold": 0, "window": "5m", **spec}
    return monitoring.measure(template, Spec(**given), found, NOW).value


def test_counters_are_compared_over_the_window_and_across_restarts() -> None:
    found = _samples(*({"query_failures": value} for value in (100, 103, 2, 4)))
    assert _value("query_failures", found) == 3 + 2 + 2
    assert _value("query_failures", found, window="1m") == 3 + 2 + 2
    found = _samples(*({"http_5xx": value} for value in (1, 5, 7, 8)), every_s=60)
    assert _value("http_5xx", found, window="1m") == 3
    assert _value("flight_failures", found) == 0


def test_an_instance_that_comes_or_goes_is_no_failure() -> None:
    found = _samples(
        {"query_failures": 2_000, "instances_ready": 2},
        {"query_failures": 1_000, "instances_ready": 1},
        {"query_failures": 2_001, "instances_ready": 2},
        {"query_failures": 2_003, "instances_ready": 2},
    )
    assert _value("query_failures", found) == 2


def test_percentages() -> None:
    found = _samples(
        {"memory_bytes": 50, "memory_limit_bytes": 100, "cpu_seconds": 10, "cpu_cores": 2},
        {"memory_bytes": 70, "memory_limit_bytes": 100, "cpu_seconds": 40, "cpu_cores": 2},
        {"instances_ready": 0, "cpu_seconds": 70, "cpu_cores": 2},
    )
    assert _value("memory_working_set", found) == pytest.approx(60)
    assert _value("container_cpu", found) == pytest.approx(50)
    assert _value("instance_health", found) == pytest.approx(200 / 3)


def test_the_99th_percentile_is_of_the_statements_in_the_window() -> None:
    found = _samples(
        {"query_durations": {"10.0": 1_000, "100.0": 1_000, "+Inf": 1_000}},
        {"query_durations": {"10.0": 1_000, "100.0": 1_100, "+Inf": 1_100}},
    )
    assert _value("query_latency_p99", found) == pytest.approx(10 + 0.99 * 90)
    slow = _samples(
        {"query_durations": {"10.0": 0, "100.0": 0, "+Inf": 0}},
        {"query_durations": {"10.0": 1, "100.0": 1, "+Inf": 9}},
    )
    assert _value("query_latency_p99", slow) == 100
    idle = [slow[-1], Sample(_at(0), slow[-1].values)]
    assert _value("query_latency_p99", idle) == 0


def test_states_and_refreshes_of_datasets() -> None:
    found = _samples(
        {"datasets": {"a": 1, "b": 1}, "refresh_errors": {"a": 1}},
        {"datasets": {"a": 1, "b": 3}, "refresh_errors": {"a": 3, "b": 1}},
    )
    status = {"op": "EQ", "threshold": 3}
    spec = Spec("EQ", 3, datasets=("a", "b"))
    measured = monitoring.measure("dataset_status", spec, found, NOW)
    assert (measured.value, measured.details) == (3, {"datasets": ["b"]})
    assert _value("dataset_status", found, datasets=("a",), **status) == 1
    unknown = Spec("EQ", 3, datasets=("a", "c"))
    assert monitoring.measure("dataset_status", unknown, found, NOW).reason == (
        "the runtime has no dataset 'c'"
    )
    assert _value("dataset_refresh_errors", found) == 3
    assert _value("dataset_refresh_errors", found, datasets=("b",)) == 1


def test_why_there_is_no_value() -> None:
    def reason(template: str, found: list[Sample]) -> str | None:
        return monitoring.measure(template, Spec("GT", 0), found, NOW).reason

    assert reason("query_failures", []) == "there are no recent samples of the project's metrics"
    old = [Sample(_at(-181), {"instances": 1, "instances_ready": 1, "queries": 0})]
    assert reason("instance_health", old) == "there are no recent samples of the project's metrics"
    assert reason("query_failures", _samples({})) == "there are too few samples yet"
    down = [Sample(_at(-30), {"instances": 1, "instances_ready": 0})]
    assert reason("query_failures", down) == "the runtime does not answer"
    assert reason("memory_working_set", down) == "the runtime does not answer"
    assert reason("instance_health", down) is None
    assert reason("memory_working_set", _samples({})) == "the project has no memory limit"
    assert reason("storage", _samples({})) == "the project has no storage quota"


def test_clusters_are_judged_by_their_projects() -> None:
    one = _samples({"cpu_seconds": 0, "cpu_cores": 1}, {"cpu_seconds": 30, "cpu_cores": 1})
    two = _samples({"cpu_seconds": 0, "cpu_cores": 1}, {"cpu_seconds": 15, "cpu_cores": 1})
    down = [Sample(_at(-30), {"instances": 1, "instances_ready": 0})]
    spec = Spec("GT", 0)

    def value(template: str, found: dict[int, list[Sample]]) -> Measured:
        return monitoring.measure_cluster(template, spec, found, NOW)

    assert value("cluster_cpu", {1: one, 2: two, 3: down}).value == pytest.approx(75)
    assert value("cluster_availability", {1: one, 3: down}).value == pytest.approx(50)
    assert value("cluster_memory", {1: one}).reason == "the project has no memory limit"
    assert value("cluster_cpu", {}).reason == "no project runs on the cluster"


def test_states_are_those_of_the_table() -> None:
    assert [state.value for state in State] == ["ok", "pending", "firing", "suspended"]
