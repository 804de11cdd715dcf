"""Adds up where the time of a distributed statement went, for EXPLAIN ANALYZE."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from caraway_core.protocols.profiles import OperatorProfile, TaskProfile
from caraway_scheduler.dispatch.tasks.reports import FinishedTask

_NS_PER_MS = 1e6
_OPERATORS = {
    "AggregateExec": "grouping",
    "SortExec": "sorting",
    "SortPreservingMergeExec": "sorting",
    "PartialSortExec": "sorting",
    "BoundedWindowAggExec": "windows",
    "WindowAggExec": "windows",
    "FilterExec": "filtering",
    "ProjectionExec": "projecting",
}
_TIMES = {
    "time_elapsed_opening": "reading",
    "time_elapsed_processing": "reading",
    "build_time": "building",
    "join_time": "probing",
    "repartition_time": "partitioning",
    "elapsed_compute": "",
}
"""The work of operators; an empty text: it depends on the operator."""
_INSTEAD = frozenset({"build_time", "join_time", "time_elapsed_processing", "repartition_time"})
"""Times of operators whose `elapsed_compute` is part of them, or is not counted."""


def busy_ms(profile: TaskProfile) -> Mapping[str, float]:
    """Return what the engine's threads did, in milliseconds of all threads together."""
    counter: Counter[str] = Counter()
    for each in profile.operators:
        for work, ns in _works(each):
            counter[work] += ns
    return {work: ns / _NS_PER_MS for work, ns in sorted(counter.items()) if ns}


def _works(operator: OperatorProfile) -> Iterator[tuple[str, int]]:
    kind = operator.text.partition(":")[0].strip()
    has_own = not _INSTEAD.isdisjoint(operator.metrics)
    for name, ns in operator.metrics.items():
        work = _TIMES.get(name)
        if work == "":
            work = None if has_own else _OPERATORS.get(kind, "other")
        if work is not None:
            yield work, ns


def spilled_bytes(profile: TaskProfile) -> int:
    """Return the bytes that a task wrote to disk because memory was short."""
    return sum(each.metrics.get("spilled_bytes", 0) for each in profile.operators)


def moving_ms(task: FinishedTask) -> float:
    """Return how long a task waited for its inputs and its answer was on the way."""
    if task.profile is None:
        return 0.0
    profile = task.profile
    return max(0.0, task.called_ms - profile.waited_ms - profile.planned_ms - profile.ran_ms)


def skew(tasks: Sequence[FinishedTask]) -> float:
    """Return by how much the longest task of a stage is longer than their mean."""
    times = [each.elapsed_ms for each in tasks]
    mean = sum(times) / len(times) if times else 0.0
    return max(times) / mean if mean else 1.0


def line(task: FinishedTask) -> str:
    """Return where the time of a task went, in one line; empty if it is not known."""
    profile = task.profile
    if profile is None:
        return ""
    parts = {
        "moving": moving_ms(task),
        "waiting for a slot": profile.waited_ms,
        "planning": profile.planned_ms,
        "engine": profile.computed_ms,
        "packing": profile.ran_ms - profile.computed_ms,
    }
    text = ", ".join(f"{name} {ms:.1f} ms" for name, ms in parts.items() if ms >= 0.05)
    busy = ", ".join(f"{work} {ms:.1f}" for work, ms in busy_ms(profile).items() if ms >= 0.05)
    text += f"; threads: {busy} ms" if busy else ""
    text += f"; {task.received_bytes} bytes from other executors" if task.received_bytes else ""
    spilled = spilled_bytes(profile)
    return text + (f"; {spilled} bytes spilled" if spilled else "")


def document(tasks: Sequence[FinishedTask], elapsed_ms: float) -> str:
    """Return the profile of a statement as JSON."""
    by_stage: dict[str, list[FinishedTask]] = {}
    for each in tasks:
        by_stage.setdefault(each.stage, []).append(each)
    stages = [
        {
            "name": name,
            "note": own[0].note,
            "skew": round(skew(own), 2),
            "tasks": [_task(each) for each in sorted(own, key=lambda each: each.number)],
        }
        for name, own in by_stage.items()
    ]
    return json.dumps({"elapsed_ms": round(elapsed_ms, 3), "stages": stages})


def _task(task: FinishedTask) -> Mapping[str, object]:
    found: dict[str, object] = {
        "number": task.number,
        "executor": task.executor_id,
        "rows": task.rows,
        "bytes": task.size_bytes,
        "ended_at_ms": task.ended_ns // 1_000_000,
    }
    profile = task.profile
    if profile is None:
        return {**found, "elapsed_ms": round(task.elapsed_ms, 3)}
    return {
        **found,
        "received_bytes": task.received_bytes,
        "spilled_bytes": spilled_bytes(profile),
        "moving_ms": round(moving_ms(task), 3),
        "waited_ms": round(profile.waited_ms, 3),
        "planning_ms": round(profile.planned_ms, 3),
        "engine_ms": round(profile.computed_ms, 3),
        "packing_ms": round(profile.ran_ms - profile.computed_ms, 3),
        "threads_ms": {work: round(ms, 3) for work, ms in busy_ms(profile).items()},
        "operators": [
            {"operator": each.text, "depth": each.depth, "metrics": dict(each.metrics)}
            for each in profile.operators
        ],
    }
