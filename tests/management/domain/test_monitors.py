import math
from collections.abc import Mapping
from typing import Any

import pytest

from caraway_management.domain import monitors
from caraway_management.domain.monitors import Channels, Of, Op, Spec
from caraway_management.domain.refusals import RefusedError

LATENCY, STATUS = monitors.TEMPLATES["query_latency_p99"], monitors.TEMPLATES["dataset_status"]
ALL = Channels(has_email=True, has_slack=True)
MANY = [f"d{number}" for number in range(monitors.MOST_DATASETS + 1)]


def test_a_spec_is_read_stored_and_read_again() -> None:
    spec = monitors.read_spec(
        LATENCY, "query_latency_p99", {"threshold": 5, "severity": "critical"}
    )
    assert (spec.op, spec.threshold, spec.window, spec.severity) == ("GT", 5, "5m", "critical")
    assert monitors.stored_spec(spec.as_json()) == spec
    changed = monitors.read_spec(LATENCY, "query_latency_p99", {"op": "LT"}, base=spec)
    assert (changed.op, changed.threshold) == ("LT", 5)


def test_datasets_are_given_one_way_and_once_each() -> None:
    values = {"threshold": 3, "datasets": ["a", "b", "a"]}
    spec = monitors.read_spec(STATUS, "dataset_status", values)
    assert spec.datasets == ("a", "b")
    assert monitors.stored_spec(spec.as_json()) == spec
    one = monitors.read_spec(STATUS, "dataset_status", {"threshold": 3, "dataset": "a"})
    assert one.datasets == ("a",)


@pytest.mark.parametrize(
    ("name", "values", "field"),
    [
        ("query_latency_p99", {}, "spec.threshold"),
        ("query_latency_p99", {"threshold": math.inf}, "spec.threshold"),
        ("query_latency_p99", {"threshold": -1e16}, "spec.threshold"),
        ("query_latency_p99", {"threshold": 1, "datasets": ["a"]}, "spec.datasets"),
        ("dataset_status", {"threshold": 3, "dataset": "a", "datasets": ["b"]}, "spec.datasets"),
        ("dataset_status", {"threshold": 3, "datasets": MANY}, "spec.datasets"),
        ("dataset_status", {"threshold": 3, "datasets": ["a\n"]}, "spec.datasets"),
        ("dataset_status", {"threshold": 3}, "spec.datasets"),
        ("dataset_status", {"threshold": 6, "dataset": "a"}, "spec.threshold"),
        ("dataset_status", {"threshold": 3, "op": "GT", "dataset": "a"}, "spec.threshold"),
    ],
)  # fmt: skip
def test_specs_that_are_refused(name: str, values: Mapping[str, Any], field: str) -> None:
    with pytest.raises(RefusedError) as refused:
        monitors.read_spec(monitors.TEMPLATES[name], name, values)
    assert list(refused.value.fields) == [field]


@pytest.mark.parametrize(
    ("op", "holding"),
    [("GT", {3}), ("GEQ", {2, 3}), ("LT", {1}), ("LEQ", {1, 2}), ("EQ", {2}), ("NEQ", {1, 3})],
)
def test_conditions(op: Op, holding: set[int]) -> None:
    assert {value for value in (1, 2, 3) if Spec(op, 2).holds(value)} == holding


def test_templates_are_of_projects_or_of_clusters() -> None:
    assert monitors.find_template("cluster_cpu", Of.CLUSTER).of is Of.CLUSTER
    for name, of in [("cluster_cpu", Of.PROJECT), ("container_cpu", Of.CLUSTER), ("x", Of.PROJECT)]:
        with pytest.raises(RefusedError, match="use one of") as refused:
            monitors.find_template(name, of)
        assert refused.value.status == 404


def test_names_have_one_line() -> None:
    assert monitors.check_name("Slow queries") == "Slow queries"
    with pytest.raises(RefusedError, match="name"):
        monitors.check_name("a\nb")


@pytest.mark.parametrize(
    "targets",
    [
        {"email": {"emails": ["a@example.com"]}},
        {"email": {"recipientUserIds": [1]}, "slack": {"channelId": "C012AB3CD"}},
        {"http": {"url": "https://example.com/hook", "token": "abc", "signing_secret": None}},
    ],
)
def test_targets_that_can_be_reached(targets: Mapping[str, Any]) -> None:
    monitors.check_targets(targets, ALL)


@pytest.mark.parametrize(
    ("targets", "channels", "field"),
    [
        ({}, ALL, "targets"),
        ({"email": {"emails": ["a@b"]}}, Channels(), "targets.email"),
        ({"email": {}}, ALL, "targets.email"),
        ({"email": {"emails": ["a b@c"]}}, ALL, "targets.email.emails"),
        ({"slack": {"channelId": "C1"}}, Channels(), "targets.slack"),
        ({"slack": {"channelId": "#general"}}, ALL, "targets.slack.channelId"),
        ({"http": {"url": "https://x.example/", "token": "a b"}}, ALL, "targets.http.token"),
    ],
)
def test_targets_that_are_refused(
    targets: Mapping[str, Any], channels: Channels, field: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        monitors.check_targets(targets, channels)
    assert list(refused.value.fields) == [field]
