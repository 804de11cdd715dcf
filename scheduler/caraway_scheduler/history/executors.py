"""Records the work of executors in the task history, as children of its statement's span."""

from collections.abc import Callable

from caraway_scheduler.dispatch.tasks.reports import FinishedTask
from caraway_scheduler.history.tasks import TaskHistory, TaskRecord
from caraway_serving import spans

TASK = "sql_fragment"


def recorder(history: TaskHistory) -> Callable[[FinishedTask], None]:
    """Return a function that adds completed work to the history."""

    def record(ran: FinishedTask) -> None:
        span = spans.current.get() or spans.start(None)
        history.add(
            TaskRecord(
                span=span.child(),
                task=TASK,
                input=f"{ran.stage}: {ran.note}",
                start_ns=ran.ended_ns - int(ran.elapsed_ms * 1e6),
                end_ns=ran.ended_ns,
                labels={
                    "query_id": ran.query_id,
                    "stage": ran.stage,
                    "task": str(ran.number),
                    "rows_produced": str(ran.rows),
                    "bytes_produced": str(ran.size_bytes),
                },
                node_id=ran.executor_id,
                principal=span.principal,
            )
        )

    return record
