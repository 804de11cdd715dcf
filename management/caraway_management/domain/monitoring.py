"""Judges monitors: the value of a condition from samples, and the state that follows from it."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from caraway_management.domain import samples
from caraway_management.domain.monitors import WINDOWS_S, Spec
from caraway_management.domain.samples import Values

EVERY_S = 60
STALE_S = 180
"""A project whose last sample is older is not judged."""
BASELINE_S = 90
"""The age before the window that the sample for comparing counters may have."""
_CALM_S = 60
"""Time without the condition after which a firing monitor resolves: two judgements."""
_QUANTILE = 0.99
_COUNTED: Mapping[str, str] = {
    "query_failures": samples.QUERY_FAILURES,
    "http_5xx": samples.HTTP_5XX,
    "flight_failures": samples.FLIGHT_FAILURES,
    "llm_failures": samples.LLM_FAILURES,
}
_RATIOS: Mapping[str, tuple[str, str, str]] = {
    "instance_health": (samples.INSTANCES_READY, samples.INSTANCES, "no instance should run"),
    "memory_working_set": (
        samples.MEMORY_BYTES, samples.MEMORY_LIMIT_BYTES, "the project has no memory limit",
    ),
    "storage": (samples.DISK_BYTES, samples.DISK_LIMIT_BYTES, "the project has no storage quota"),
}  # fmt: skip


class State(StrEnum):
    """The state of a monitor."""

    OK = "ok"
    PENDING = "pending"
    """The condition holds, for less than it must."""
    FIRING = "firing"
    SUSPENDED = "suspended"
    """A reaction that is not judged any more, as its query never ends."""


class Event(StrEnum):
    """The event that a monitor gives notice of."""

    FIRED = "monitor.fired"
    RESOLVED = "monitor.resolved"


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a monitor between two judgements."""

    state: State = State.OK
    since: datetime | None = None
    """When the state began."""
    calm_since: datetime | None = None
    """Since when the condition of a firing monitor has not held."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The metrics of a project at a moment."""

    at: datetime
    values: Values


@dataclass(frozen=True, slots=True)
class Measured:
    """The value of a template, or why there is none."""

    value: float | None
    reason: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a judgement."""

    standing: Standing
    measured: Measured
    event: Event | None = None


def judge(standing: Standing, spec: Spec, measured: Measured, now: datetime) -> Verdict:
    """Return the next state of a monitor. Without a value it neither fires nor resolves."""
    if measured.value is None:
        # The time for which the condition has held, or has not, is unknown now.
        if standing.state is State.PENDING:
            standing = Standing(State.OK, now)
        return Verdict(replace(standing, calm_since=None), measured)
    if spec.holds(measured.value):
        return _held(standing, spec, measured, now)
    if standing.state is State.FIRING:
        calm = standing.calm_since
        if calm is not None and now - calm >= timedelta(seconds=_CALM_S):
            return Verdict(Standing(State.OK, now), measured, Event.RESOLVED)
        return Verdict(replace(standing, calm_since=calm or now), measured)
    if standing.state is State.PENDING:
        return Verdict(Standing(State.OK, now), measured)
    return Verdict(standing, measured)


def _held(standing: Standing, spec: Spec, measured: Measured, now: datetime) -> Verdict:
    if standing.state is State.FIRING:
        return Verdict(replace(standing, calm_since=None), measured)
    began = standing.since if standing.state is State.PENDING else None
    began = began or now
    if now - began >= timedelta(seconds=spec.sustain_s):
        return Verdict(Standing(State.FIRING, now), measured, Event.FIRED)
    return Verdict(Standing(State.PENDING, began), measured)


def measure(template: str, spec: Spec, found: Sequence[Sample], now: datetime) -> Measured:
    """Return the value of a template of a project over the window of a condition.

    `found` are the samples of the window and one before it, the oldest first.
    """
    start = now - timedelta(seconds=WINDOWS_S[spec.window])
    inside = [sample for sample in found if start <= sample.at <= now]
    if not inside or now - inside[-1].at > timedelta(seconds=STALE_S):
        return Measured(None, "there are no recent samples of the project's metrics")
    if template in _RATIOS:
        return _ratio(template, inside)
    if template == "dataset_status":
        return _dataset_status(spec, inside[-1])
    earlier = [sample for sample in found if sample.at < start]
    compared = [*earlier[-1:], *inside]
    if samples.QUERIES not in inside[-1].values:
        return Measured(None, "the runtime does not answer")
    if len(compared) < 2:
        return Measured(None, "there are too few samples yet")
    if template in _COUNTED:
        return Measured(increase(compared, _COUNTED[template]))
    if template == "container_cpu":
        return cpu(compared)
    if template == "query_latency_p99":
        return Measured(_quantile(_increases(compared, samples.QUERY_DURATIONS)))
    return _refresh_errors(spec, compared)


def measure_cluster(
    template: str, spec: Spec, found: Mapping[int, Sequence[Sample]], now: datetime
) -> Measured:
    """Return the value of a template of a cluster from the samples of its projects, by their id.

    CPU and memory are the means of the projects whose runtimes answer.
    """
    if not found:
        return Measured(None, "no project runs on the cluster")
    of_project = {
        "cluster_cpu": "container_cpu",
        "cluster_memory": "memory_working_set",
        "cluster_availability": "instance_health",
    }[template]
    each = [measure(of_project, spec, samples_, now) for samples_ in found.values()]
    values = [measured.value for measured in each if measured.value is not None]
    if not values:
        return each[0]
    return Measured(sum(values) / len(values), details={"projects": len(values)})


def _ratio(template: str, inside: Sequence[Sample]) -> Measured:
    part, whole, reason = _RATIOS[template]
    ratios = [
        100 * sample.values[part] / sample.values[whole]
        for sample in inside
        if part in sample.values and sample.values.get(whole)
    ]
    if ratios:
        return Measured(sum(ratios) / len(ratios))
    is_down = samples.QUERIES not in inside[-1].values and template != "instance_health"
    return Measured(None, "the runtime does not answer" if is_down else reason)


def _dataset_status(spec: Spec, last: Sample) -> Measured:
    states: Mapping[str, float] = last.values.get(samples.DATASETS, {})
    if unknown := [name for name in spec.datasets if name not in states]:
        return Measured(None, f"the runtime has no dataset '{unknown[0]}'")
    met = [name for name in spec.datasets if spec.holds(states[name])]
    value = states[(met or spec.datasets)[0]]
    return Measured(value, details={"datasets": met} if met else {})


def _refresh_errors(spec: Spec, compared: Sequence[Sample]) -> Measured:
    errors = _increases(compared, samples.REFRESH_ERRORS)
    failed = {
        name: count
        for name, count in errors.items()
        if count and (not spec.datasets or name in spec.datasets)
    }
    details = {"datasets": sorted(failed)[:20]} if failed else {}
    return Measured(float(sum(failed.values())), details=details)


def cpu(compared: Sequence[Sample]) -> Measured:
    """Return how much of its cores a project used, in percent."""
    used = possible = 0.0
    for before, after in _pairs(compared):
        seconds = (after.at - before.at).total_seconds()
        cores = after.values.get(samples.CPU_CORES, 0)
        if cores and samples.CPU_SECONDS in after.values and samples.CPU_SECONDS in before.values:
            used += _grown(before.values[samples.CPU_SECONDS], after.values[samples.CPU_SECONDS])
            possible += seconds * cores
    if not possible:
        return Measured(None, "there are too few samples yet")
    return Measured(100 * used / possible)


def increase(compared: Sequence[Sample], name: str) -> float:
    """Return how much a counter grew from the first to the last sample."""
    return sum(
        _grown(before.values.get(name, 0), after.values.get(name, 0))
        for before, after in _pairs(compared)
    )


def _increases(compared: Sequence[Sample], name: str) -> dict[str, float]:
    grown: dict[str, float] = {}
    for before, after in _pairs(compared):
        old: Mapping[str, float] = before.values.get(name, {})
        new: Mapping[str, float] = after.values.get(name, {})
        for key, value in new.items():
            grown[key] = grown.get(key, 0) + _grown(old.get(key, 0), value)
    return grown


def _pairs(compared: Sequence[Sample]) -> list[tuple[Sample, Sample]]:
    """Return neighbours that can be compared: samples of equally many instances that answered.

    If one came or went, the sum of their counters changed by all that it had counted.
    """
    answered = [sample for sample in compared if samples.QUERIES in sample.values]
    return [
        (before, after)
        for before, after in itertools.pairwise(answered)
        if before.values.get(samples.INSTANCES_READY) == after.values.get(samples.INSTANCES_READY)
    ]


def _grown(before: float, after: float) -> float:
    """Return how much a counter grew, which begins again at 0 when its process does."""
    return after - before if after >= before else after


def _quantile(buckets: Mapping[str, float]) -> float:
    """Return the quantile of a histogram, or 0 if it counted nothing."""
    bounds = sorted((float(bound), count) for bound, count in buckets.items())
    if not bounds or not bounds[-1][1]:
        return 0.0
    rank = _QUANTILE * bounds[-1][1]
    lower = counted = 0.0
    for bound, count in bounds:
        if count >= rank:
            if bound == float("inf"):
                return lower
            share = (rank - counted) / (count - counted) if count > counted else 1.0
            return lower + (bound - lower) * share
        lower, counted = bound, count
    return lower
