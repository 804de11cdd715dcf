"""Reactions: notices for each event of a project, such as a statement that failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from caraway_management.domain import names, refusals, watching

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_OF_PROJECT = 20
MOST_SHOWN = 20
MOST_READ = 200
"""Events that are read of a project at a time; the others follow a minute later."""
_TIMEOUT = "did not finish within"
_MOST_TASKS = 20

KINDS: Mapping[str, str] = {
    "task_history_error": "failed",
    "task_history_timeout": "ran into their time limit",
    "task_history_slow": "took too long",
}
"""The kinds whose events are tasks, and what happened to them."""
ALL_KINDS = (*KINDS, *watching.KINDS)
FIELDS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(KINDS, frozenset({"tasks"})),
    "task_history_slow": frozenset({"tasks", "thresholdMs"}),
    **watching.FIELDS,
}
"""The fields of a spec that each kind takes, in addition to those of all kinds."""
_COMMON = frozenset({"severity", "includeDetails"})


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
        RefusedError: there is none of this name.
    """
    if kind in ALL_KINDS:
        return kind
    raise refusals.invalid_field("kind", f"must be one of {', '.join(ALL_KINDS)}")


def read_spec(kind: str, values: Mapping[str, Any]) -> dict[str, object]:
    """Return what a reaction matches.

    Raises:
        RefusedError: a value does not fit the kind.
    """
    values = {name: value for name, value in values.items() if value is not None}
    if unused := values.keys() - FIELDS[kind] - _COMMON:
        raise refusals.invalid_field(f"spec.{min(unused)}", f"is not used by '{kind}'")
    common = {
        "severity": values.get("severity", "warn"),
        "includeDetails": values.get("includeDetails", True),
    }
    if kind in watching.KINDS:
        return watching.read_spec(kind, values) | common
    tasks = list(dict.fromkeys(values.get("tasks", ())))
    if len(tasks) > _MOST_TASKS:
        raise refusals.invalid_field("spec.tasks", f"must be at most {_MOST_TASKS}")
    for task in tasks:
        names.check_text(task, "spec.tasks", 100)
    spec = {"tasks": tasks} | common
    if kind == "task_history_slow":
        if "thresholdMs" not in values:
            raise refusals.invalid_field("spec.thresholdMs", "is missing")
        spec["thresholdMs"] = values["thresholdMs"]
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
        f"SELECT /* {watching.MARK} */ span_id, task, input, CAST(end_time AS BIGINT) AS ended, "
        "execution_duration_ms, error_message FROM runtime.task_history "
        f"WHERE CAST(end_time AS BIGINT) > {int(cursor_ns)} AND input NOT LIKE '%{watching.MARK}%' "
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
