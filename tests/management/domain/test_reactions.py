import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from caraway_management.domain import reactions
from caraway_management.domain.reactions import Task
from caraway_management.domain.refusals import RefusedError
from tests.kit.deadlines import eventually
from tests.kit.runtime import running

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
FAILED = Task("1", "sql_query", "SELECT x", 1, 5, "no such column")
SLOW = Task("2", "ai_chat", "Hello", 2, 9_000, None)
STOPPED = Task("3", "sql_query", "SELECT 1", 3, 60_000,
               "the query did not finish within 60 s and was stopped; make it do less")  # fmt: skip


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(RefusedError, match="must be one of"):
        reactions.check_kind("x")


def test_which_tasks_match() -> None:
    everything = reactions.read_spec("task_history_error", {})
    only = reactions.read_spec("task_history_error", {"tasks": ["ai_chat"]})
    slow = reactions.read_spec("task_history_slow", {"thresholdMs": 9_000})
    found = [FAILED, SLOW, STOPPED]

    def matched(kind: str, spec: dict[str, object]) -> list[Task]:
        return [task for task in found if reactions.matches(kind, spec, task)]

    assert matched("task_history_error", everything) == [FAILED, STOPPED]
    assert matched("task_history_error", only) == []
    assert matched("task_history_timeout", everything) == [STOPPED]
    assert matched("task_history_slow", slow) == [SLOW, STOPPED]


def test_a_threshold_is_for_slow_tasks_only() -> None:
    with pytest.raises(RefusedError, match="is missing"):
        reactions.read_spec("task_history_slow", {})
    with pytest.raises(RefusedError, match="is not used by"):
        reactions.read_spec("task_history_error", {"thresholdMs": 1})


def test_summaries() -> None:
    assert reactions.summary("task_history_error", [FAILED]) == "1 task failed."
    assert reactions.summary("task_history_timeout", [STOPPED]) == "1 task ran into its time limit."
    assert reactions.summary("task_history_slow", [SLOW, STOPPED]) == "2 tasks took too long."


async def test_the_history_of_a_real_runtime_is_read_on_from_a_cursor(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        first = int(reactions.first_cursor(datetime.now(UTC) - timedelta(hours=1)))

        async def tasks(cursor: int, slowest_ms: float | None = None) -> list[Task]:
            answer = await runtime.sql(reactions.statement(cursor, slowest_ms))
            assert answer.status_code == 200, answer.text
            return reactions.read_tasks(json.loads(answer.content))

        async def failures_are(count: int) -> bool:
            return len(await tasks(first)) == count

        await runtime.sql("SELECT nope")
        await runtime.sql("SELECT 1 AS fine")
        await eventually(lambda: failures_are(1), "the failure is in the history", 30)
        [failed] = await tasks(first)
        assert (failed.task, failed.input) == ("sql_query", "SELECT nope")
        assert failed.error is not None
        assert await tasks(failed.ended_ns) == []
        # Statements of this service are not events, however long they take.
        inputs = [task.input for task in await tasks(first, 0)]
        assert inputs == ["SELECT nope", "SELECT 1 AS fine"]
        await runtime.sql("SELECT other")
        await eventually(lambda: failures_are(2), "the failure is in the history", 30)
        assert [task.input for task in await tasks(failed.ended_ns)] == ["SELECT other"]
        assert failed.ended_ns > first
