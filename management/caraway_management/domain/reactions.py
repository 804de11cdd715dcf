"""Reactions: notices for each event of a project, such as a statement that failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from caraway_management.domain import names, refusals

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_OF_PROJECT = 20
MOST_SHOWN = 20
MOST_READ = 200
"""Events that are read of a project at a time; the others follow a minute later."""
_TIMEOUT = "did not finish within"
_MOST_TASKS = 20
_MARK = "caraway:reactions"

KINDS: Mapping[str, str] = {
    "task_history_error": "failed",
    "task_history_timeout": "ran into their time limit",
    "task_history_slow": "took too long",
}
"""The kinds whose events the runtime has, and what happened to the tasks."""
UNAVAILABLE = ("dataset_row_match", "dataset_query")
"""Kinds that the runtime has no source of events for."""


@dataclass(frozen=True, slots=True)
class Task:
    """A finished task of the runtime, as its history says."""

    id: str
    task: str
    input: str
    ended_ns: int
    """When it ended, in nanoseconds since 1970."""
    duration_ms: float
    error: str | None

    def as_json(self) -> dict[str, Any]:
        """Return what notices show of it."""
        return {
            "task": self.task,
            "input": self.input[:500],
            "ended_at": (EPOCH + timedelta(microseconds=self.ended_ns // 1_000)).isoformat(),
            "duration_ms": self.duration_ms,
            "error": self.error[:500] if self.error else None,
        }


def check_kind(kind: str) -> str:
    """Return the kind of a reaction.

    Raises:
        RefusedError: there is none of this name, or the runtime has no events of it.
    """
    if kind in KINDS:
        return kind
    if kind in UNAVAILABLE:
        raise refusals.invalid_field(
            "kind",
            f"the runtime sends no events of the kind '{kind}'; use one of {', '.join(KINDS)}",
            "reaction_kind_unavailable",
        )
    raise refusals.invalid_field("kind", f"must be one of {', '.join(KINDS)}")


def read_spec(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a reaction matches.

    Raises:
        RefusedError: a value does not fit the kind.
    """
    tasks = list(dict.fromkeys(values.get("tasks", ())))
    if len(tasks) > _MOST_TASKS:
        raise refusals.invalid_field("spec.tasks", f"must be at most {_MOST_TASKS}")
    for task in tasks:
        names.check_text(task, "spec.tasks", 100)
    spec = {
        "tasks": tasks,
        "severity": values.get("severity", "warn"),
        "includeDetails": values.get("includeDetails", True),
    }
    threshold = values.get("thresholdMs")
    if kind == "task_history_slow":
        if threshold is None:
            raise refusals.invalid_field("spec.thresholdMs", "is missing")
        return spec | {"thresholdMs": threshold}
    if threshold is not None:
        raise refusals.invalid_field("spec.thresholdMs", f"is not used by '{kind}'")
    return spec


def matches(kind: str, spec: Mapping[str, Any], task: Task) -> bool:
    """Return whether a task is an event of a reaction."""
    if spec["tasks"] and task.task not in spec["tasks"]:
        return False
    if kind == "task_history_slow":
        return bool(task.duration_ms >= spec["thresholdMs"])
    is_timeout = task.error is not None and _TIMEOUT in task.error
    return is_timeout if kind == "task_history_timeout" else task.error is not None


def summary(kind: str, found: Sequence[Task]) -> str:
    """Return what happened, in a sentence."""
    number = f"{len(found)} task{'s' if len(found) > 1 else ''}"
    return f"{number} {KINDS[kind].replace('their', 'its') if len(found) == 1 else KINDS[kind]}."


def statement(cursor_ns: int, slowest_ms: float | None) -> str:
    """Return the statement that reads the tasks after a moment that may match."""
    slow = "" if slowest_ms is None else f" OR execution_duration_ms >= {float(slowest_ms)}"
    return (
        f"SELECT /* {_MARK} */ span_id, task, input, CAST(end_time AS BIGINT) AS ended, "
        "execution_duration_ms, error_message FROM runtime.task_history "
        f"WHERE CAST(end_time AS BIGINT) > {int(cursor_ns)} AND input NOT LIKE '%{_MARK}%' "
        f"AND (error_message IS NOT NULL{slow}) ORDER BY end_time LIMIT {MOST_READ}"
    )


def first_cursor(now: datetime) -> str:
    """Return the cursor of a new reaction: events before it do not count."""
    return str((now - EPOCH) // timedelta(microseconds=1) * 1_000)


def read_tasks(rows: Sequence[Mapping[str, Any]]) -> list[Task]:
    """Return the tasks of the rows of a statement."""
    return [
        Task(
            str(row["span_id"]), str(row["task"]), str(row["input"] or ""), int(row["ended"]),
            float(row["execution_duration_ms"] or 0), row["error_message"],
        )
        for row in rows
    ]  # fmt: skip
