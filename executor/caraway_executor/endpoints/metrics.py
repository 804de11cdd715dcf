"""The Prometheus metrics of an executor."""

from collections import Counter
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, exposition
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from caraway_core.concurrency import tasks
from caraway_executor.endpoints.tallies import ExecutorTallies, Moved

CONTENT_TYPE = exposition.CONTENT_TYPE_LATEST


def render(tallies: ExecutorTallies, active_tasks: int) -> bytes:
    """Return the metrics page in Prometheus text format."""
    registry = CollectorRegistry()
    registry.register(_Page(lambda: collect(tallies, active_tasks)))
    return exposition.generate_latest(registry)


def collect(tallies: ExecutorTallies, active_tasks: int) -> Iterable[Metric]:
    """Return the metrics, read from the state."""
    failures = CounterMetricFamily(
        "background_failures",
        "Failures of background tasks; the log has their causes.",
        labels=("work",),
    )
    for kind, count in tasks.FAILURES.items():
        failures.add_metric((kind,), count)
    yield failures
    yield GaugeMetricFamily("executor_tasks_active", "Tasks under way.", value=active_tasks)
    durations = tallies.task_durations
    duration = HistogramMetricFamily(
        "executor_task_duration_ms", "Time of tasks, in milliseconds.", labels=()
    )
    duration.add_metric((), durations.cumulative(()), sum_value=durations.sums_ms[()])
    yield duration
    embedded = CounterMetricFamily(
        "executor_embedded_texts",
        "Texts that embedding models were called with.",
        labels=("model",),
    )
    for model, count in tallies.embedded.items():
        embedded.add_metric((model,), count)
    yield embedded
    answered = CounterMetricFamily(
        "executor_model_answers", "Calls that hosted models have answered.", labels=("model",)
    )
    for model, count in tallies.answered.items():
        answered.add_metric((model,), count)
    yield answered
    ready = GaugeMetricFamily(
        "executor_model_copies", "Copies of hosted models that are ready.", labels=("model",)
    )
    for model, copies in Counter(tallies.models).items():
        ready.add_metric((model,), copies)
    yield ready
    yield from _moved("write", "Left in exchanges", tallies.written)
    yield from _moved("read_local", "Read from exchanges of this host", tallies.read_local)
    yield from _moved("read_remote", "Read from exchanges of other hosts", tallies.read_remote)


def _moved(way: str, help_: str, moved: Moved) -> Iterable[Metric]:
    name = f"executor_shuffle_{way}"
    yield CounterMetricFamily(f"{name}_bytes", f"{help_}, in bytes.", value=moved.size_bytes)
    yield CounterMetricFamily(f"{name}_rows", f"{help_}, in rows.", value=moved.rows)


class _Page(Collector):
    def __init__(self, look: Callable[[], Iterable[Metric]]) -> None:
        self._look = look

    def collect(self) -> Iterable[Metric]:
        return self._look()
