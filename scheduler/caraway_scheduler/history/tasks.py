"""Keeps finished tasks in memory for the table `runtime.task_history`, also those of executors."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

import pyarrow as pa

from caraway_core.concurrency.clocks import NanosecondsClock
from caraway_core.concurrency.quotas import Quota, QuotaLimits
from caraway_core.ids import NodeId, PrincipalId
from caraway_scheduler.dispatch.tasks.reports import FinishedTask
from caraway_serving import spans
from caraway_serving.spans import Span

_NS = 1_000_000_000
_MOST_TASKS = 100_000
_MOST_BYTES = 128 * 1024 * 1024
_RECORD_BYTES = 512
_RUNTIME = ""
"""Holds the tasks of the runtime itself."""
_LONGEST_TEXT = 8_192

SCHEMA = pa.schema(
    [
        pa.field("trace_id", pa.string(), nullable=False),
        pa.field("span_id", pa.string(), nullable=False),
        pa.field("parent_span_id", pa.string()),
        pa.field("task", pa.string(), nullable=False),
        pa.field("input", pa.string(), nullable=False),
        pa.field("captured_output", pa.string()),
        pa.field("start_time", pa.timestamp("ns"), nullable=False),
        pa.field("end_time", pa.timestamp("ns"), nullable=False),
        pa.field("execution_duration_ms", pa.float64(), nullable=False),
        pa.field("error_message", pa.string()),
        pa.field("labels", pa.map_(pa.string(), pa.string()), nullable=False),
        pa.field("node_id", pa.string(), nullable=False),
    ]
)
FRAGMENT_TASK = "sql_fragment"


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A finished task."""

    span: Span
    task: str
    input: str
    start_ns: int
    end_ns: int
    error_message: str | None = None
    captured_output: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    node_id: str | None = None
    """The node that ran it; None means this process."""
    principal: PrincipalId | None = None
    """The principal of its statement; None for work of the runtime itself."""

    @property
    def duration_ms(self) -> float:
        """The duration in milliseconds."""
        return (self.end_ns - self.start_ns) / 1e6


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """Settings of the task history: its columns, and how long they are kept."""

    enabled: bool = True
    retention_s: float = 8 * 3600
    captures_output: bool = False
    min_sql_duration_s: float = 0.0


class TaskHistory:
    """A bounded list of finished tasks, which drops the oldest by age, number or size.

    Where it is full, the principal with most tasks loses its oldest one.
    """

    def __init__(
        self, settings: HistorySettings, node_id: NodeId, clock_ns: NanosecondsClock
    ) -> None:
        self.settings = settings
        self._node_id = node_id
        self._clock_ns = clock_ns
        self.quota: Quota[int] = Quota(
            "tasks", QuotaLimits(most=_MOST_TASKS, most_bytes=_MOST_BYTES)
        )
        self._records: dict[int, TaskRecord] = {}
        self._numbers = itertools.count()
        # Statements read the table in threads.
        self._lock = Lock()
        self._listeners: list[Callable[[TaskRecord], None]] = []

    def __len__(self) -> int:
        return len(self._records)

    def subscribe(self, listener: Callable[[TaskRecord], None]) -> None:
        """Pass every later record to `listener` too, such as the trace exporter."""
        self._listeners.append(listener)

    def add(self, record: TaskRecord) -> None:
        """Record a finished task and notify the listeners."""
        for listener in self._listeners:
            listener(record)
        if not self.settings.enabled:
            return
        if record.task == "sql_query":
            if record.duration_ms < self.settings.min_sql_duration_s * 1000:
                return
        record = _cut(record)
        holder, size = record.principal or _RUNTIME, _size(record)
        with self._lock:
            number = next(self._numbers)
            for gone in self.quota.add(holder, number, size):
                del self._records[gone]
            self._records[number] = record

    def prune(self) -> None:
        """Drop records that are older than the retention."""
        oldest = self._clock_ns() - int(self.settings.retention_s * _NS)
        with self._lock:
            items = self._records.items()
            aged = [*itertools.takewhile(lambda item: item[1].end_ns < oldest, items)]
            for number, _ in aged:
                del self._records[number]
                self.quota.drop(number)

    def table(self, viewer: PrincipalId | None) -> pa.Table:
        """Return the tasks of a principal, oldest first; all tasks if `viewer` is None."""
        self.prune()
        with self._lock:
            kept = list(self._records.values())
        records = [record for record in kept if viewer is None or record.principal == viewer]
        columns = [
            [record.span.trace_id for record in records],
            [record.span.span_id for record in records],
            [record.span.parent_span_id for record in records],
            [record.task for record in records],
            [record.input for record in records],
            [record.captured_output for record in records],
            [record.start_ns for record in records],
            [record.end_ns for record in records],
            [record.duration_ms for record in records],
            [record.error_message for record in records],
            [list(record.labels.items()) for record in records],
            [record.node_id or self._node_id for record in records],
        ]
        arrays = [
            pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _cut(record: TaskRecord) -> TaskRecord:
    if len(record.input) <= _LONGEST_TEXT:
        return record
    return replace(record, input=record.input[:_LONGEST_TEXT])


def _size(record: TaskRecord) -> int:
    texts = (record.input, record.captured_output or "", record.error_message or "")
    labels = sum(len(name) + len(value) for name, value in record.labels.items())
    return _RECORD_BYTES + sum(map(len, texts)) + labels


def work_recorder(history: TaskHistory) -> Callable[[FinishedTask], None]:
    """Return a function that adds completed work to the history."""

    def record(ran: FinishedTask) -> None:
        span = spans.current.get() or spans.start(None)
        history.add(
            TaskRecord(
                span=span.child(),
                task=FRAGMENT_TASK,
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
