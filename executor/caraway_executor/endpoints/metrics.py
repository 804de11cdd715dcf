"""The Prometheus metrics of an executor."""

from collections import Counter

from caraway_core.concurrency import tasks
from caraway_executor.endpoints.tallies import ExecutorTallies
from caraway_serving.metric_families import (
    CONTENT_TYPE,
    Families,
    Page,
    Table,
    counter,
    gauge,
    histogram,
)

__all__ = ["CONTENT_TYPE", "render"]


_EXECUTOR: Table[tuple[ExecutorTallies, int]] = (
    counter("background_failures", "Failures of background tasks; the log has their causes.",
            "work", lambda _: tasks.FAILURES),
    gauge("executor_tasks_active", "Tasks under way.", "", lambda of: of[1]),
    histogram("executor_task_duration_ms", "Time of tasks, in milliseconds.",
              "", lambda of: of[0].task_durations),
    counter("executor_embedded_texts", "Texts that embedding models were called with.",
            "model", lambda of: of[0].embedded),
    counter("executor_model_answers", "Calls that hosted models have answered.",
            "model", lambda of: of[0].answered),
    gauge("executor_model_copies", "Copies of hosted models that are ready.",
          "model", lambda of: Counter(of[0].models)),
    counter("executor_shuffle_write_bytes", "Left in exchanges, in bytes.",
            "", lambda of: of[0].written.size_bytes),
    counter("executor_shuffle_write_rows", "Left in exchanges, in rows.",
            "", lambda of: of[0].written.rows),
    counter("executor_shuffle_read_local_bytes", "Read from exchanges of this host, in bytes.",
            "", lambda of: of[0].read_local.size_bytes),
    counter("executor_shuffle_read_local_rows", "Read from exchanges of this host, in rows.",
            "", lambda of: of[0].read_local.rows),
    counter("executor_shuffle_read_remote_bytes", "Read from exchanges of other hosts, in bytes.",
            "", lambda of: of[0].read_remote.size_bytes),
    counter("executor_shuffle_read_remote_rows", "Read from exchanges of other hosts, in rows.",
            "", lambda of: of[0].read_remote.rows),
)  # fmt: skip


def render(tallies: ExecutorTallies, active_tasks: int) -> bytes:
    """Return the metrics page in Prometheus text format."""
    return Page(lambda: Families().families_of(_EXECUTOR, (tallies, active_tasks))).render()
