import pytest

from caraway_core.ids import NodeId
from caraway_scheduler.history.tasks import HistorySettings, TaskHistory, TaskRecord
from caraway_serving import spans

SECOND = 1_000_000_000


class Clock:
    now = 100 * SECOND

    def __call__(self) -> int:
        return self.now


def record(end_s: float, task: str = "sql_query", took_s: float = 1.0) -> TaskRecord:
    end = int(end_s * SECOND)
    return TaskRecord(spans.start(None), task, "SELECT 1", end - int(took_s * SECOND), end)


def history(settings: HistorySettings | None = None) -> tuple[TaskHistory, Clock]:
    clock = Clock()
    return TaskHistory(settings or HistorySettings(retention_s=10), NodeId("n"), clock), clock


def test_table_has_the_columns_of_the_reference_and_the_values() -> None:
    tasks, _ = history()
    tasks.add(record(99))
    row = tasks.table(None).to_pylist()[0]
    assert list(row) == [
        "trace_id", "span_id", "parent_span_id", "task", "input", "captured_output", "start_time",
        "end_time", "execution_duration_ms", "error_message", "labels", "node_id",
    ]  # fmt: skip
    assert row["execution_duration_ms"] == 1000.0
    assert row["node_id"] == "n"


def test_old_records_are_dropped() -> None:
    tasks, clock = history()
    tasks.add(record(99))
    tasks.add(record(105))
    clock.now = 110 * SECOND
    assert tasks.table(None).num_rows == 1
    assert len(tasks) == 1


def test_disabled_history_keeps_nothing_but_notifies_listeners() -> None:
    tasks, _ = history(HistorySettings(enabled=False))
    heard: list[TaskRecord] = []
    tasks.subscribe(heard.append)
    tasks.add(record(99))
    assert (len(tasks), len(heard)) == (0, 1)


def test_short_statements_are_left_out_below_the_least_duration() -> None:
    tasks, _ = history(HistorySettings(retention_s=1000, min_sql_duration_s=0.5))
    tasks.add(record(99, took_s=0.1))
    tasks.add(record(99, took_s=0.6))
    tasks.add(record(99, task="health", took_s=0.1))
    assert [row["task"] for row in tasks.table(None).to_pylist()] == ["sql_query", "health"]


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        "00-" + "0" * 32 + "-" + "1" * 16 + "-01",
        "00-" + "1" * 32 + "-" + "0" * 16 + "-01",
        "ff-" + "1" * 32 + "-" + "1" * 16 + "-01",
        "00-" + "G" * 32 + "-" + "1" * 16 + "-01",
    ],
)
def test_malformed_trace_context_begins_a_new_trace(header: str | None) -> None:
    span = spans.start(header)
    assert span.parent_span_id is None
    assert len(span.trace_id) == 32
    assert span.trace_id != "1" * 32


def test_trace_context_is_continued() -> None:
    span = spans.start("00-" + "a" * 32 + "-" + "b" * 16 + "-01")
    assert (span.trace_id, span.parent_span_id) == ("a" * 32, "b" * 16)
    child = span.child()
    assert (child.trace_id, child.parent_span_id) == (span.trace_id, span.span_id)
    assert span.traceparent == f"00-{span.trace_id}-{span.span_id}-01"
